"""Jobs: submit, look, list, cancel."""

from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.datastructures import Headers

from api.auth import AskedBy, Tenant
from api.deps import JobId, With
from api.routes.answers import Responses, refusals
from api.submission import BOOK_EXAMPLE, EXAMPLE
from api.submitting import accept
from api.views.job import JobPage, JobView
from shared.errors import UsageError
from shared.jobs import JobState
from shared.ledger import jobs
from shared.tiers import Tier

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

SUBMISSION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Submission"},
                "examples": {
                    "text": {"summary": "One text", "value": EXAMPLE},
                    "chapters": {"summary": "A book by chapters", "value": BOOK_EXAMPLE},
                },
            }
        },
    }
}
CREATED: Responses = {
    201: {
        "description": "Accepted and safely recorded.",
        "headers": {"Location": {"schema": {"type": "string"}}},
    },
    200: {
        "description": "An earlier request with this Idempotency-Key made this job.",
        "model": JobView,
        "headers": {"Idempotent-Replayed": {"schema": {"type": "string", "enum": ["true"]}}},
    },
}
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="the same key with the same body gives the same job, however often sent",
    ),
]


class JobFilter(BaseModel):
    """Which jobs to list."""

    model_config = ConfigDict(extra="forbid")

    state: list[JobState] = Field(default_factory=list, description="may be given several times")
    tier: Tier | None = None
    created_from: AwareDatetime | None = Field(default=None, description="at or after, RFC 3339")
    created_to: AwareDatetime | None = Field(default=None, description="before, RFC 3339")
    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(
        default=None,
        pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$",
        description="`next_cursor` of the page before",
    )


@router.post(
    "",
    status_code=201,
    response_model=JobView,
    responses=CREATED | refusals(400, 403, 409, 413, 415, 422, 503),
    openapi_extra=SUBMISSION,
    summary="Submit a job",
)
async def submit(
    request: Request, deps: With, caller: AskedBy, idempotency_key: IdempotencyKey = None
) -> Response:
    """Hand text in. The answer comes once the job is recorded; rendering follows by itself."""
    _require_json(request.headers)
    body = await request.body()
    receipt = await to_thread.run_sync(
        partial(accept, deps, caller, body, idempotency_key), limiter=deps.submits
    )
    headers = {"Location": receipt.job.links.self}
    if receipt.replayed:
        headers["Idempotent-Replayed"] = "true"
    if receipt.step_id is not None:
        deps.waker.wake(receipt.step_id)
    return Response(
        receipt.job.model_dump_json(),
        status_code=200 if receipt.replayed else 201,
        headers=headers,
        media_type="application/json",
    )


@router.get("", responses=refusals(422, 503), summary="List jobs")
def list_jobs(deps: With, tenant: Tenant, wanted: Annotated[JobFilter, Query()]) -> JobPage:
    """Newest first."""
    records = deps.read(
        lambda conn: jobs.page(
            conn,
            tenant,
            limit=wanted.limit + 1,
            before_id=wanted.cursor,
            states=wanted.state,
            tier=wanted.tier,
            created_from=wanted.created_from.timestamp() if wanted.created_from else None,
            created_to=wanted.created_to.timestamp() if wanted.created_to else None,
        )
    )
    shown = records[: wanted.limit]
    return JobPage(
        data=[JobView.of(record) for record in shown],
        next_cursor=shown[-1].id if len(records) > len(shown) else None,
    )


@router.get("/{job_id}", responses=refusals(404, 503), summary="Look at a job")
def get_job(deps: With, tenant: Tenant, job_id: JobId) -> JobView:
    """The job as it stands now."""
    return JobView.of(deps.read(lambda conn: jobs.get(conn, tenant, job_id)))


@router.post("/{job_id}/cancel", responses=refusals(404, 503), summary="Cancel a job")
def cancel_job(deps: With, tenant: Tenant, job_id: JobId) -> JobView:
    """End a job that is still alive. One that has ended is left, and shown, as it is."""
    return JobView.of(deps.transact(lambda conn: jobs.cancel(conn, tenant, job_id)))


def _require_json(headers: Headers) -> None:
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        raise UsageError(
            "the body must be application/json in UTF-8", code="unsupported-media-type"
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise UsageError("compressed bodies are not read here", code="unsupported-media-type")
