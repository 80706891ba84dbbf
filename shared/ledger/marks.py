"""Marks of a job's progress: how much was settled when, every few seconds. Knows no rate.

A part leaves a mark with the first commit that finds its last one old enough, so the hot path pays
nothing but a comparison; a job of one segment leaves none.
"""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import (
    Connection,
    Float,
    Integer,
    String,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.scheduling.pace import LONGEST_S, Mark

MARK_EVERY_S = 3.0

_JOB = bindparam("the_job", type_=String)
_PART, _NOW = bindparam("the_part", type_=Integer), bindparam("the_now", type_=Float(53))
_p = t.part.c
_LEAVE = insert(t.mark).from_select(
    ["job_id", "part", "at", "chars", "segments"],
    select(
        _JOB,
        _PART,
        _NOW,
        func.sum(_p.chars_done),
        func.sum(_p.segments_total - _p.remaining),
    ).where(_p.job_id == bindparam("of_job")),
)
_NOTE = (
    update(t.part)
    .where(_p.job_id == bindparam("of_job"), _p.index == bindparam("of_part"))
    .values(marked_at=bindparam("the_time"))
)


def is_due(marked_at: float | None, now: float) -> bool:
    """Whether a part whose last mark is of then should leave one now; also of a time to come."""
    return marked_at is None or not 0 <= now - marked_at < MARK_EVERY_S


def leave(conn: Connection, job_id: str, part: int, now: float) -> None:
    """Mark how far the job is. The caller holds the part's row, so no part marks twice at once."""
    key = {"the_job": job_id, "the_part": part, "the_now": now, "of_job": job_id}
    conn.execute(_LEAVE, key)
    conn.execute(_NOTE, {"of_job": job_id, "of_part": part, "the_time": now})


def recent(conn: Connection, job_ids: Sequence[str]) -> dict[str, list[Mark]]:
    """The marks of these jobs that a rate may be read from, oldest first."""
    return since(conn, job_ids, read_clock(conn) - LONGEST_S) if job_ids else {}


def since(conn: Connection, job_ids: Sequence[str], at: float) -> dict[str, list[Mark]]:
    """The marks that these jobs left since then (epoch seconds), oldest first."""
    if not job_ids:
        return {}
    c = t.mark.c
    rows = conn.execute(
        select(c.job_id, c.at, c.chars, c.segments)
        .where(c.job_id.in_(job_ids), c.at >= at)
        .order_by(c.at)
    )
    found: dict[str, list[Mark]] = defaultdict(list)
    for row in rows:
        found[row.job_id].append(Mark(row.at, row.chars, row.segments))
    return found


def forget(conn: Connection, job_id: str) -> None:
    """Delete a job's marks: some of what they count is no longer settled, so no rate is in them."""
    conn.execute(delete(t.mark).where(t.mark.c.job_id == job_id))


def forget_old(conn: Connection) -> int:
    """Delete marks that no rate is read from any more. Returns how many."""
    old = t.mark.c.at < read_clock(conn) - 2 * LONGEST_S
    return conn.execute(delete(t.mark).where(old)).rowcount
