"""Who else is being rendered: what other jobs have left, and how far they came of late.

Knows rows; what follows from them for a job's time is decided in `shared.scheduling.company`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Float, Row, Select, bindparam, func, select

from shared.jobs import JobState
from shared.ledger import marks
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.scheduling.company import Neighbour
from shared.scheduling.pace import Mark
from shared.tiers import Tier

MOST_JOBS = 64  # of each kind: the most urgent that render, the last that ended


@dataclass(frozen=True, slots=True)
class Rendered:
    """A job that renders, or has just ended."""

    id: str
    tenant: str
    tier: Tier
    live: bool
    neighbour: Neighbour


def read(conn: Connection, since: float) -> list[Rendered]:
    """The most urgent jobs that render, and those that ended since then (epoch seconds).

    Paused jobs have nothing left: they do not render until somebody lets them.
    """
    now = read_clock(conn)
    rows = [
        *(row for tier in Tier for row in conn.execute(_rendering(tier))),
        *conn.execute(_ended(), {"since": since}),
    ][: 2 * MOST_JOBS]
    found = marks.since(conn, [row.id for row in rows], since - 2 * marks.MARK_EVERY_S)
    return [_rendered(row, found.get(row.id, []), since, now) for row in rows]


@cache
def _rendering(tier: Tier) -> Select[Any]:
    c = t.job.c
    return (
        _sums()
        .where(t.IS_WAITING_JOB, c.tier == tier, c.state == JobState.RENDERING)
        .order_by(c.due_at, c.id)
        .limit(MOST_JOBS)
    )


@cache
def _ended() -> Select[Any]:
    c = t.job.c
    return (
        _sums()
        .where(t.IS_SETTLED_JOB, c.ended_at >= bindparam("since", type_=Float(53)))
        .order_by(c.ended_at.desc())
        .limit(MOST_JOBS)
    )


def _sums() -> Select[Any]:
    c, p = t.job.c, t.part.c
    sums = [
        select(func.coalesce(func.sum(column), 0))
        .where(p.job_id == c.id)
        .correlate(t.job)
        .scalar_subquery()
        .label(label)
        for label, column in (
            ("chars_total", p.chars_total),
            ("chars_done", p.chars_done),
            ("segments", p.segments_total),
            ("remaining", p.remaining),
        )
    ]
    return select(c.id, c.tenant, c.tier, c.state, c.paused, *sums)


def _rendered(row: Row[Any], left: list[Mark], since: float, now: float) -> Rendered:
    live = row.state == JobState.RENDERING and not row.paused
    return Rendered(
        id=row.id,
        tenant=row.tenant,
        tier=Tier(row.tier),
        live=live,
        neighbour=Neighbour(
            marks=tuple(_whole(row, left, since, now)),
            chars_left=row.chars_total - row.chars_done if live else 0,
            segments_left=row.remaining if live else 0,
        ),
    )


def _whole(row: Row[Any], left: list[Mark], since: float, now: float) -> Iterator[Mark]:
    """The marks up to this moment; of one that left none it is known that it stood still.

    What came after the last mark came soon after it, else it would have left another one.
    """
    if not row.chars_done:
        return
    chars, segments = row.chars_done, row.segments - row.remaining
    yield from left or [Mark(since, chars, segments)]
    stood_at = left[-1].at + marks.MARK_EVERY_S if left else since
    if stood_at < now:
        yield Mark(stood_at, chars, segments)
    yield Mark(now, chars, segments)
