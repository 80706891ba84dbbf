"""Jobs: submit, look, list, pause, resume, cancel, try again, delete."""

from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from api.auth import AskedBy, Tenant
from api.deps import JobId, With
from api.routes.answers import SUBMISSION, Responses, refusals, require_json
from api.submitting import accept
from api.views.job import JobPage, JobView
from shared.crashpoints import crash_point
from shared.forgetting import forget
from shared.jobs import JobState
from shared.ledger import expiry, jobs, pausing, retrying
from shared.ledger.jobs import JobRecord
from shared.tiers import Tier

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

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
    require_json(request.headers)
    body = await request.body()
    crash_point("api.read")
    receipt = await to_thread.run_sync(
        partial(accept, deps, caller, body, idempotency_key), limiter=deps.submits
    )
    headers = {"Location": receipt.job.links.self}
    if receipt.replayed:
        headers["Idempotent-Replayed"] = "true"
    if receipt.step_id is not None:
        deps.waker.wake()
    crash_point("api.answering")
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


@router.delete("/{job_id}", responses=refusals(404, 503), summary="Delete a job's audio and text")
def delete_job(deps: With, tenant: Tenant, job_id: JobId) -> JobView:
    """End the job's retention now; one that is alive is cancelled first. Its record stays.

    Audio that other jobs of the tenant refer to stays for them. Deleting twice is harmless.
    """
    deps.transact(lambda conn: expiry.delete_now(conn, tenant, job_id))
    forget(deps.farm.database, job_id, reuse_s=deps.farm.settings.reuse_s)
    return JobView.of(deps.read(lambda conn: jobs.get(conn, tenant, job_id)))


@router.post("/{job_id}/cancel", responses=refusals(404, 503), summary="Cancel a job")
def cancel_job(deps: With, tenant: Tenant, job_id: JobId) -> JobView:
    """End a job that is still alive. One that has ended is left, and shown, as it is."""
    return JobView.of(deps.transact(lambda conn: jobs.cancel(conn, tenant, job_id)))


@router.post("/{job_id}/pause", responses=refusals(404, 409, 503), summary="Pause a job")
def pause_job(deps: With, tenant: Tenant, job_id: JobId) -> JobView:
    """Let a job stand still. What is being spoken is finished; nothing more of it is begun."""

    def work(conn: Connection) -> JobRecord:
        tier = jobs.get(conn, tenant, job_id).spec.tier
        deps.farm.database.lock_tier(conn, tier)  # no feeder is half way
        return pausing.pause(conn, tenant, job_id)

    return JobView.of(deps.transact(work))


@router.post("/{job_id}/resume", responses=refusals(404, 503), summary="Resume a job")
def resume_job(deps: With, tenant: Tenant, job_id: JobId) -> JobView:
    """Let a paused job go on; its `due_at` has moved by the pause. Any other is left as it is."""
    return JobView.of(deps.transact(lambda conn: pausing.resume(conn, tenant, job_id)))


@router.post("/{job_id}/retry", responses=refusals(404, 409, 503), summary="Try a job again")
def retry_job(deps: With, tenant: Tenant, job_id: JobId) -> JobView:
    """Take up a partial or failed job again. Only what is missing is rendered.

    Files without a gap are kept; `due_at` moves by the time since the job ended. A job that is
    alive is left, and shown, as it is.
    """
    record = deps.transact(lambda conn: retrying.retry(conn, tenant, job_id))
    deps.waker.wake()
    return JobView.of(record)
