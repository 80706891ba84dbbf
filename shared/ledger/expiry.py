"""The end of a job's retention: its files and its text go, the record of it stays.

One short transaction ends it; its segments are then forgotten bit by bit, by whoever comes. An
owner's wish to delete it at once is kept in the row, so it outlives who carries it out.
"""

from collections import Counter

from sqlalchemy import Connection, delete, func, select, update

from shared.jobs import JobState
from shared.ledger import deliverables, jobs, objects
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock

_j = t.job.c


def due(conn: Connection, limit: int) -> list[str]:
    """Ended jobs whose retention is over, the longest over first."""
    rows = conn.execute(
        select(_j.id)
        .where(t.IS_KEPT_JOB, _j.expires_at <= read_clock(conn))
        .order_by(_j.expires_at)
        .limit(limit)
    )
    return list(rows.scalars())


def unfinished(conn: Connection, limit: int) -> list[str]:
    """Expired jobs of which something is still to be forgotten."""
    return list(conn.execute(select(_j.id).where(t.IS_EXPIRED_JOB).limit(limit)).scalars())


def expire(conn: Connection, job_id: str, *, reuse_s: float) -> bool:
    """Expire an ended job whose retention is over: text and files go. False: it is not due.

    `reuse_s`: how long what nobody else refers to may still be reused.
    """
    over = t.IS_KEPT_JOB & (_j.expires_at <= read_clock(conn))
    expired = conn.execute(
        update(t.job).where(_j.id == job_id, over).values(**_EXPIRED, expires_at=db_now())
    )
    if expired.rowcount != 1:
        return False
    _drop(conn, job_id, keep_s=reuse_s)
    return True


def delete_now(conn: Connection, tenant: str, job_id: str) -> None:
    """Expire a job because its owner says so; nothing of it is kept for reuse.

    One that is alive is cancelled first, one that has expired is gone through once more: what was
    kept for reuse goes too. Raises NotFoundError.
    """
    jobs.cancel(conn, tenant, job_id)
    while not _delete_ended(conn, job_id):  # somebody has just had it tried again
        jobs.cancel(conn, tenant, job_id)


def _delete_ended(conn: Connection, job_id: str) -> bool:
    now = read_clock(conn)
    expired = conn.execute(
        update(t.job)
        .where(_j.id == job_id, t.IS_KEPT_JOB)
        .values(**_EXPIRED, expires_at=now, deleted_at=now)
    )
    if expired.rowcount == 1:
        _drop(conn, job_id, keep_s=0.0)
        return True
    again = conn.execute(
        update(t.job)
        .where(_j.id == job_id, _j.state == JobState.EXPIRED)
        .values(deleted_at=func.coalesce(_j.deleted_at, now), forgotten_at=None)
    )
    return again.rowcount == 1


def forget_some(
    conn: Connection, job_id: str, *, after: int, reuse_s: float, limit: int
) -> int | None:
    """Forget text and audio of an expired job's next segments, behind the index `after`.

    Returns the last index, to go on behind; None when all is forgotten, which is then noted.
    """
    row = conn.execute(
        select(_j.deleted_at).where(_j.id == job_id, _j.state == JobState.EXPIRED)
    ).one_or_none()
    if row is None:
        return None
    c = t.segment.c
    rows = conn.execute(
        select(c.index.label("number"), c.object_key)
        .where(c.job_id == job_id, c.index > after)
        .order_by(c.index)
        .limit(limit)
        .with_for_update()
    ).all()
    if rows:
        here = (c.job_id == job_id) & c.index.between(rows[0].number, rows[-1].number)
        conn.execute(update(t.segment).where(here).values(text="", object_key=None))
        counts = Counter(r.object_key for r in rows if r.object_key is not None)
        objects.release(conn, counts, keep_s=reuse_s if row.deleted_at is None else 0.0)
        return int(rows[-1].number)
    if row.deleted_at is not None:
        objects.condemn_now(conn, job_id)
    conn.execute(
        update(t.job)
        .where(_j.id == job_id, _j.deleted_at.is_not_distinct_from(row.deleted_at))
        .values(forgotten_at=db_now())
    )
    return None


def unswept(conn: Connection, *, after_s: float, limit: int) -> list[tuple[str, str, float]]:
    """(tenant, job, since) of jobs for which nothing new can count, for at least `after_s`."""
    rows = conn.execute(
        select(_j.tenant, _j.id, _j.unswept_since)
        .where(t.IS_UNSWEPT_JOB, _j.unswept_since <= read_clock(conn) - after_s)
        .order_by(_j.unswept_since)
        .limit(limit)
    )
    return [(row.tenant, row.id, row.unswept_since) for row in rows]


def swept(conn: Connection, job_id: str, since: float) -> None:
    """Note that a job's leftovers are gone, unless it has moved on meanwhile."""
    conn.execute(
        update(t.job).where(_j.id == job_id, _j.unswept_since == since).values(unswept_since=None)
    )


_EXPIRED = {"state": JobState.EXPIRED, "forgotten_at": None, "unswept_since": db_now()}


def _drop(conn: Connection, job_id: str, *, keep_s: float) -> None:
    conn.execute(delete(t.job_text).where(t.job_text.c.job_id == job_id))
    conn.execute(update(t.part).where(t.part.c.job_id == job_id).values(title=""))
    deliverables.remove(conn, job_id, keep_s=keep_s)
