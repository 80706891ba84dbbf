"""The outbox: one event per end of a job, written in the transaction that ends it."""

from sqlalchemy import Connection, select

from shared.ids import new_id
from shared.jobs import JobState
from shared.ledger import tables as t
from shared.ledger.clock import db_now

_EVENTS = {
    JobState.COMPLETED: "job.completed",
    JobState.PARTIAL: "job.partial",
    JobState.FAILED: "job.failed",
    JobState.CANCELLED: "job.cancelled",
}


def record_end(conn: Connection, job_id: str, state: JobState) -> None:
    """Append the end event of a job's round. Call only from the transaction that ended it."""
    job = conn.execute(select(t.job.c.tenant, t.job.c.round).where(t.job.c.id == job_id)).one()
    conn.execute(
        t.outbox.insert().values(
            id=new_id(),
            tenant=job.tenant,
            job_id=job_id,
            type=_EVENTS[state],
            round=job.round,
            created_at=db_now(),
        )
    )
