"""What can be promised: the tiers as they stand, and a quote for a job."""

from functools import partial

from anyio import to_thread
from fastapi import APIRouter, Request

from api.auth import AskedBy, Tenant
from api.deps import With
from api.quoting import quote
from api.routes.answers import SUBMISSION, refusals, require_json
from api.views.quote import QuoteView
from api.views.tier import TierList

router = APIRouter(prefix="/v1", tags=["promises"])


@router.get("/tiers", responses=refusals(503), summary="Look at the tiers")
def list_tiers(deps: With, _tenant: Tenant) -> TierList:
    """Each tier's targets, backlog, predicted wait, and how it kept its promises; a second old."""
    return TierList.of(deps.outlooks.now(), deps.farm.settings.tiers)


@router.post(
    "/jobs/quote",
    responses=refusals(400, 403, 413, 415, 422, 503),
    openapi_extra=SUBMISSION,
    summary="Quote a job",
)
async def quote_job(request: Request, deps: With, caller: AskedBy) -> QuoteView:
    """The body of a submit. Refused where no waiting helps; `admissible` says what does.

    Nothing is written or reserved.
    """
    require_json(request.headers)
    body = await request.body()
    return await to_thread.run_sync(partial(quote, deps, caller, body), limiter=deps.quotes)
