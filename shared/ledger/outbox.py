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
    """Append the end event of a job. Call only from the transaction that moved it there."""
    tenant = conn.execute(select(t.job.c.tenant).where(t.job.c.id == job_id)).scalar_one()
    conn.execute(
        t.outbox.insert().values(
            id=new_id(), tenant=tenant, job_id=job_id, type=_EVENTS[state], created_at=db_now()
        )
    )
