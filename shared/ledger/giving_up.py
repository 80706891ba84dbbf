"""What becomes of a segment that has crashed alone too often: the fallback engine's, or a gap."""

from sqlalchemy import Connection, select

from shared.content import fallback_key
from shared.jobs import Fallback
from shared.ledger import segments, settling
from shared.ledger import tables as t
from shared.ledger.settling import Committed


def give_up(conn: Connection, job_id: str, index: int, token: int, error: str) -> Committed:
    """Let the job's fallback engine speak a segment; without one, or after it, quarantine it.

    `token` is its newest. Of a quarantine the outcome is that of `settling.quarantine`.
    """
    s = t.segment.c
    row = conn.execute(
        select(t.job.c.spec, s.fallback, s.content_key)
        .join_from(t.job, t.segment, s.job_id == t.job.c.id)
        .where(t.job.c.id == job_id, s.index == index)
    ).one_or_none()
    if row is None:  # its job has been deleted
        return Committed(won=False)
    named = row.spec.get("fallback")
    if named is None or row.fallback:
        return settling.quarantine(conn, job_id, index, token, error)
    key = fallback_key(row.content_key, Fallback.model_validate(named).model_dump())
    won = segments.fall_back(conn, job_id, index, token, content_key=key, error=error)
    return Committed(won=won)
