"""Pausing and resuming a job. What nobody has claimed goes back to wait, at once.

Whoever holds a claim that no engine has begun puts it back (`segments.put_back`); others finish.

A pause stops the clock of the job's promise: on resuming, its deadline and those of its waiting
segments move by the time that it stood still, so that it neither overtakes others nor counts as
late for it.
"""

from sqlalchemy import Connection, update

from shared.errors import ConflictError
from shared.jobs import JobState
from shared.ledger import jobs
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.jobs import JobRecord
from shared.ledger.kept import first_due_later
from shared.ledger.offers import refresh_heads
from shared.segments import SegmentState

PAUSABLE = frozenset({JobState.ACCEPTED, JobState.PLANNING, JobState.RENDERING})


def pause(conn: Connection, tenant: str, job_id: str) -> JobRecord:
    """Stop feeding a job; a paused one is left as it is. The caller holds the tier's lock.

    Raises NotFoundError, and ConflictError "not-pausable" when nothing is left to render.
    """
    paused = conn.execute(
        update(t.job)
        .where(
            t.job.c.id == job_id,
            t.job.c.tenant == tenant,
            t.job.c.state.in_(PAUSABLE),
            t.job.c.paused.is_(False),
        )
        .values(paused=True, paused_at=read_clock(conn))
    )
    if paused.rowcount:
        _take_back(conn, job_id)
        refresh_heads(conn, [job_id])
    record = jobs.get(conn, tenant, job_id)
    if not record.paused:
        raise ConflictError(
            f"the job is {record.state.value}: nothing is left to pause",
            code="not-pausable",
            state=record.state.value,
        )
    return record


def resume(conn: Connection, tenant: str, job_id: str) -> JobRecord:
    """Let a paused job go on; any other is left as it is. Raises NotFoundError."""
    now = read_clock(conn)
    paused_at = jobs.get(conn, tenant, job_id).paused_at
    if paused_at is not None:
        stood_s = max(0.0, now - paused_at)
        resumed = conn.execute(
            update(t.job)
            .where(t.job.c.id == job_id, t.job.c.paused_at == paused_at)
            .values(
                paused=False,
                paused_at=None,
                due_at=t.job.c.due_at + stood_s,
                first_due_at=first_due_later(stood_s),
            )
        )
        if resumed.rowcount:
            conn.execute(
                update(t.segment)
                .where(t.segment.c.job_id == job_id, t.segment.c.state == SegmentState.PENDING)
                .values(due_at=t.segment.c.due_at + stood_s)
            )
            refresh_heads(conn, [job_id])
    return jobs.get(conn, tenant, job_id)


def _take_back(conn: Connection, job_id: str) -> None:
    """Return what is dispatched and unclaimed; its messages in the broker are stale from now on."""
    conn.execute(
        update(t.segment)
        .where(
            t.IS_IN_FLIGHT,
            t.segment.c.job_id == job_id,
            t.segment.c.state == SegmentState.DISPATCHED,
        )
        .values(state=SegmentState.PENDING)
    )
