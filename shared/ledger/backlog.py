"""What waits in each tier, and what it did last. Cheap with 100,000 open rows.

Every query reads a partial index, or a bounded number of rows. Paused jobs do not count: they wait
for their owner, not for the farm.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, TextClause, func, select

from shared.jobs import JobState
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.scheduling.forecast import Spoken
from shared.tiers import Tier

SPOKEN_READ = 500  # the last finished segments of a tier
SPOKEN_AGE_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """One tier's work that is not done. `chars` are those of waiting and unplanned text.

    `oldest_at` is when the oldest job with text still to be spoken was accepted (epoch seconds).
    """

    segments_waiting: int = 0
    segments_in_flight: int = 0
    jobs_unplanned: int = 0
    chars: int = 0
    oldest_at: float | None = None


@dataclass(frozen=True, slots=True)
class TierLoad:
    """What the ledger knows of a tier. `spoken`: its last finished segments, newest first."""

    backlog: Backlog
    spoken: tuple[Spoken, ...]


def read(conn: Connection) -> tuple[float, Mapping[Tier, TierLoad]]:
    """(the ledger's clock, the load of every tier)."""
    now = read_clock(conn)
    backlogs = _backlogs(conn)
    return now, {
        tier: TierLoad(
            backlog=backlogs[tier],
            spoken=spoken(conn, tier),
        )
        for tier in Tier
    }


def _backlogs(conn: Connection) -> dict[Tier, Backlog]:
    waiting = _sums(conn, t.IS_PENDING)
    in_flight = _sums(conn, t.IS_IN_FLIGHT)
    paused = _paused(conn)
    unplanned = dict.fromkeys(Tier, (0, 0))
    oldest = dict[Tier, float]()
    for row in conn.execute(
        select(
            t.job.c.tier,
            t.job.c.state,
            func.count().label("jobs"),
            func.sum(t.job.c.characters).label("chars"),
            func.min(t.job.c.created_at).label("oldest_at"),
        )
        .where(t.IS_WAITING_JOB, t.job.c.paused_at.is_(None))
        .group_by(t.job.c.tier, t.job.c.state)
    ):
        tier = Tier(row.tier)
        oldest[tier] = min(row.oldest_at, oldest.get(tier, row.oldest_at))
        if row.state != JobState.RENDERING:
            jobs, chars = unplanned[tier]
            unplanned[tier] = jobs + row.jobs, chars + int(row.chars)
    return {
        tier: Backlog(
            segments_waiting=max(0, waiting[tier][0] - paused[tier][0]),
            segments_in_flight=in_flight[tier][0],
            jobs_unplanned=unplanned[tier][0],
            chars=max(0, waiting[tier][1] - paused[tier][1])
            + in_flight[tier][1]
            + unplanned[tier][1],
            oldest_at=oldest.get(tier),
        )
        for tier in Tier
    }


def _sums(conn: Connection, which: TextClause) -> dict[Tier, tuple[int, int]]:
    """(segments, characters) by tier of what a partial index holds."""
    rows = conn.execute(
        select(t.segment.c.tier, func.count(), func.sum(t.segment.c.chars))
        .where(which)
        .group_by(t.segment.c.tier)
    )
    return dict.fromkeys(Tier, (0, 0)) | {Tier(row[0]): (row[1], int(row[2])) for row in rows}


def _paused(conn: Connection) -> dict[Tier, tuple[int, int]]:
    """(segments, characters) left in paused jobs, by tier."""
    left = t.part.c.chars_total - t.part.c.chars_done
    rows = conn.execute(
        select(t.job.c.tier, func.sum(t.part.c.remaining), func.sum(left))
        .join_from(t.job, t.part, t.part.c.job_id == t.job.c.id)
        .where(t.IS_PAUSED_JOB)
        .group_by(t.job.c.tier)
    )
    return dict.fromkeys(Tier, (0, 0)) | {Tier(row[0]): (int(row[1]), int(row[2])) for row in rows}


def spoken(conn: Connection, tier: Tier, *, limit: int = SPOKEN_READ) -> tuple[Spoken, ...]:
    """The last finished segments of a tier, of a day at most, newest first."""
    c = t.segment.c
    rows = conn.execute(
        select(c.claimed_at, c.done_at, c.chars, c.samples, c.rate_hz)
        .where(t.IS_SPOKEN, c.tier == tier, c.done_at >= db_now() - SPOKEN_AGE_S)
        .order_by(c.done_at.desc())
        .limit(limit)
    )
    return tuple(
        Spoken(row.claimed_at, row.done_at, row.chars, row.samples / row.rate_hz)
        for row in rows
        if row.claimed_at is not None
    )
