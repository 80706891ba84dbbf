"""What comes out of a job: its progress as events, its segments, its files."""

import time
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from api.auth import AskedBy, Tenant
from api.deps import JobId, With
from api.events import job_events
from api.routes.answers import Responses, refusals
from api.views.base import utc
from api.views.file import FileList, FileView
from api.views.job import JobView
from api.views.segment import SegmentPage, SegmentView
from shared.errors import NotFoundError, UsageError
from shared.jobs import JobState
from shared.ledger import deliverables, jobs, segment_records
from shared.ledger.deliverables import Deliverable, PartRecord
from shared.ledger.segment_records import SegmentRecord

router = APIRouter(prefix="/v1/jobs/{job_id}", tags=["outputs"])

EVENTS: Responses = {
    200: {
        "description": (
            "`event: progress` with the job as data whenever it has moved, at most twice a second; "
            "`event: end` with its last state, and then the stream closes. Comments keep it alive."
        ),
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'event: progress\ndata: {"id": "01KB...", "object": "job", ...}\n\n',
            }
        },
    }
}


class SegmentFilter(BaseModel):
    """Which segments to list."""

    model_config = ConfigDict(extra="forbid")

    part: int | None = Field(default=None, ge=0, le=2**31 - 1, description="of one chapter only")
    limit: int = Field(default=100, ge=1, le=1_000)
    cursor: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="`next_cursor` of the page before"
    )


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses=EVENTS | refusals(404, 503),
    summary="Follow a job",
)
async def follow(deps: With, caller: AskedBy, job_id: JobId) -> StreamingResponse:
    """Server-sent events. Reconnecting is harmless: every event is the whole job."""

    async def look() -> JobView:
        if not await deps.keyring.still_counts(caller):
            raise NotFoundError("the key was revoked meanwhile", code="job-not-found")
        return JobView.of(await deps.watch(lambda conn: jobs.get(conn, caller.tenant, job_id)))

    await look()  # a job that is not there is a 404, not a stream
    return StreamingResponse(
        job_events(look, deps.stopping),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.get("/segments", responses=refusals(404, 422, 503), summary="List a job's segments")
def list_segments(
    deps: With, tenant: Tenant, job_id: JobId, wanted: Annotated[SegmentFilter, Query()]
) -> SegmentPage:
    """In the order of the text, each with its place in it and its state; without the text."""

    def read(conn: Connection) -> list[SegmentRecord]:
        jobs.get(conn, tenant, job_id)
        after = -1 if wanted.cursor is None else wanted.cursor
        return segment_records.page(
            conn, job_id, limit=wanted.limit + 1, after=after, part=wanted.part
        )

    records = deps.read(read)
    shown = records[: wanted.limit]
    return SegmentPage(
        data=[SegmentView.of(record) for record in shown],
        next_cursor=str(shown[-1].index) if len(records) > len(shown) else None,
    )


@router.get("/deliverables", responses=refusals(404, 410, 503), summary="Get a job's files")
def list_deliverables(deps: With, tenant: Tenant, job_id: JobId) -> FileList:
    """The files that are ready, each with a URL that needs no credentials for a while."""

    def read(conn: Connection) -> tuple[list[Deliverable], list[PartRecord]]:
        if jobs.get(conn, tenant, job_id).state is JobState.EXPIRED:
            raise UsageError("the job has expired, and its files with it", code="job-expired")
        return deliverables.of_job(conn, job_id), deliverables.parts(conn, job_id)

    files, parts = deps.read(read)
    titles = {part.index: part.title for part in parts}
    life_s = deps.farm.settings.presign_s
    expires_at = utc(time.time() + life_s)
    return FileList(
        job_id=job_id,
        files=[
            FileView.of(
                file,
                title=titles.get(file.part),
                url=deps.farm.store.presigned_get(
                    file.object_key,
                    expires_s=life_s,
                    filename=file.name,
                    content_type=file.content_type,
                ),
                url_expires_at=expires_at,
            )
            for file in files
        ],
    )
