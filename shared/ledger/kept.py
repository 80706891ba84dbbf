"""How tiers kept their promises of late: first audio and completion. Cheap with any number of jobs.

A promise falls due when it is kept, or when its time is over. One that was kept or broken stays so,
whatever becomes of its job; a paused job's clock stands still. Knows no targets: every job has the
times that it was promised on its row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, TextClause, and_, case, func, select

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
    return _kept(
        conn,
        (t.IS_SETTLED_JOB, c.tier == tier, c.ended_at >= since),
        and_(c.ended_at <= c.due_at, c.state != JobState.FAILED),
        (t.IS_WAITING_JOB, c.tier == tier, c.due_at >= since, c.due_at < now),
    )


def _first_audio(conn: Connection, tier: Tier, since: float, now: float) -> Kept:
    """Jobs whose first audio came since then, and jobs whose should have and has not.

    Jobs from before these times were written down do not count.
    """
    c = t.job.c
    due = (c.first_due_at >= since, c.first_due_at < now)
    wanted = c.state.not_in((JobState.CANCELLED, JobState.EXPIRED))
    return _kept(
        conn,
        (t.IS_HEARD_JOB, c.tier == tier, c.started_at >= since),
        c.started_at <= c.first_due_at,
        (t.IS_UNHEARD_JOB, c.tier == tier, *due, wanted),
    )


def _kept(
    conn: Connection,
    came: Sequence[ColumnElement[bool] | TextClause],
    in_time: ColumnElement[bool],
    overdue: Sequence[ColumnElement[bool] | TextClause],
) -> Kept:
    """Counts what came, as far as it was in time, and what is overdue while nobody holds it up."""
    met = func.coalesce(func.sum(case((in_time, 1), else_=0)), 0)
    done = conn.execute(select(func.count(), met).select_from(t.job).where(*came)).one()
    missing = conn.execute(
        select(func.count()).select_from(t.job).where(*overdue, t.job.c.paused_at.is_(None))
    ).scalar_one()
    return Kept(jobs=done[0] + missing, met=int(done[1]))


def first_due_later(by_s: ColumnElement[float] | float) -> ColumnElement[float]:
    """When the first audio of a job is due that stood still for so long; heard, it stays."""
    c = t.job.c
    return case((c.started_at.is_(None), c.first_due_at + by_s), else_=c.first_due_at)
