"""How tiers kept their promises of late: first audio and completion. Cheap with any number of jobs.

A promise falls due when it is kept, or when its time is over. One that was kept or broken stays so,
whatever becomes of its job; a paused job's clock stands still. Knows no targets: every job has the
times that it was promised on its row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, func, select

from shared.jobs import JobState
from shared.ledger import tables as t
from shared.tiers import Tier

HOUR_S, DAY_S = 3_600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Kept:
    """Promises that fell due, and how many of them were kept."""

    jobs: int = 0
    met: int = 0

    @property
    def share(self) -> float | None:
        """0 to 1; None when there were none."""
        return self.met / self.jobs if self.jobs else None


@dataclass(frozen=True, slots=True)
class Record:
    """Both promises of a tier's jobs, over some time."""

    completion: Kept = Kept()
    first_audio: Kept = Kept()


def read(conn: Connection, now: float, *, within_s: float) -> Mapping[Tier, Record]:
    """Each tier's record of the last `within_s` seconds before `now` (epoch seconds)."""
    since = now - within_s
    return {
        tier: Record(_completion(conn, tier, since, now), _first_audio(conn, tier, since, now))
        for tier in Tier
    }


def _completion(conn: Connection, tier: Tier, since: float, now: float) -> Kept:
    """Jobs that ended since then, and jobs that should have and have not.

    A failed job broke its promise; a cancelled one had none any more.
    """
    c = t.job.c
    in_time = and_(c.ended_at <= c.due_at, c.state != JobState.FAILED)
    ended = conn.execute(
        select(func.count(), func.coalesce(func.sum(case((in_time, 1), else_=0)), 0)).where(
            t.IS_SETTLED_JOB, c.tier == tier, c.ended_at >= since
        )
    ).one()
    overdue = conn.execute(
        select(func.count()).where(
            t.IS_WAITING_JOB,
            c.tier == tier,
            c.due_at >= since,
            c.due_at < now,
            c.paused_at.is_(None),
        )
    ).scalar_one()
    return Kept(jobs=ended[0] + overdue, met=int(ended[1]))


def _first_audio(conn: Connection, tier: Tier, since: float, now: float) -> Kept:
    """Jobs whose first audio came since then, and jobs whose should have and has not.

    Jobs from before these times were written down do not count.
    """
    c = t.job.c
    in_time = case((c.started_at <= c.first_due_at, 1), else_=0)
    heard = conn.execute(
        select(func.count(), func.coalesce(func.sum(in_time), 0)).where(
            t.IS_HEARD_JOB, c.tier == tier, c.started_at >= since
        )
    ).one()
    unheard = conn.execute(
        select(func.count()).where(
            t.IS_UNHEARD_JOB,
            c.tier == tier,
            c.first_due_at >= since,
            c.first_due_at < now,
            c.paused_at.is_(None),
            c.state.not_in((JobState.CANCELLED, JobState.EXPIRED)),
        )
    ).scalar_one()
    return Kept(jobs=heard[0] + unheard, met=int(heard[1]))
