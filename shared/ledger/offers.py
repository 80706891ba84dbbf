"""What waits, offered to the scheduling policy, and its choice written down.

Knows how much an offer holds; the reads that it is made of are `shared.ledger.waiting`'s. A job's
`head_due_at` says that it has segments to send, and when the first of them is due.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from sqlalchemy import Connection, Float, Row, String, case, func, null, select, update

from shared.ledger import tables as t
from shared.ledger import waiting
from shared.ledger.given import as_rows, field, given
from shared.ledger.upsert import upserts
from shared.scheduling.offer import (
    Choice,
    PoolState,
    Rest,
    TenantShare,
    TierOffer,
    TierState,
    WaitingJob,
    WaitingSegment,
)
from shared.tiers import Tier

URGENT_JOBS = 64  # by each order of urgency
TENANTS = 32
JOBS_OF_A_TENANT = 8
CHARS_PER_AUDIO_S = 15.0  # turns are priced alike for all engines


def offer(conn: Connection, tier: Tier, room: int, now: float) -> TierOffer:
    """The tier's most urgent jobs, and those of the tenants whose turn is next.

    The caller holds the tier's lock.
    """
    limit = min(room, URGENT_JOBS)
    first = waiting.by_head(conn, tier, limit + 1)
    if not first:
        return TierOffer(tier, jobs=[])
    jobs, rest = {row.id: row for row in first}, Rest()
    if len(first) > limit:
        jobs, rest = _choice_of_jobs(conn, tier, first, room, now)
    most = max(2, -(-2 * room // len(jobs)))
    heads = waiting.heads(conn, list(jobs), now, most + 1)
    tenants = waiting.shares(conn, tier, {row.tenant for row in jobs.values()})
    return TierOffer(
        tier=tier,
        jobs=[_job(row, heads[row.id], most) for row in jobs.values() if heads[row.id]],
        tenants={row.tenant: TenantShare(row.turn_s, row.clock_s) for row in tenants},
        rest=rest,
    )


def _choice_of_jobs(
    conn: Connection, tier: Tier, first: Sequence[Row[Any]], room: int, now: float
) -> tuple[dict[str, Row[Any]], Rest]:
    """Some of the jobs, by urgency and by turn, and the marks of those left out.

    `first` holds one more than are taken of each order of urgency.
    """
    limit = len(first) - 1
    jobs = {row.id: row for row in first[:limit]}
    on_pace = waiting.on_pace(conn, tier, now, limit + 1)
    in_time = waiting.in_time(conn, tier, now, limit + 1)
    jobs |= {row.id: row for row in [*on_pace[:limit], *in_time[:limit]]}
    deadlines_left = [row.head_due_at for row in on_pace[limit:]]
    deadlines_left += [row.due_at for row in in_time[limit:]]
    job_turns = dict.fromkeys((row.tenant for row in jobs.values()), -inf)
    few = min(room, TENANTS)
    tenants = waiting.tenants_by_turn(conn, tier, few + 1)
    each = min(room, max(JOBS_OF_A_TENANT, room // len(tenants[:few])))
    names = [row.tenant for row in tenants[:few]]
    for tenant, mine in waiting.by_turn(conn, tier, names, each + 1).items():
        jobs |= {row.id: row for row in mine[:each]}
        job_turns[tenant] = mine[each].turn_s if len(mine) > each else inf
    rest = Rest(
        deadline_at=min(deadlines_left, default=inf),
        head_due_at=first[limit].head_due_at,
        tenant_turn_s=tenants[few].turn_s if len(tenants) > few else inf,
        job_turn_s=job_turns,
    )
    return jobs, rest


def _job(row: Row[Any], heads: Sequence[tuple[float, int, int]], most: int) -> WaitingJob:
    return WaitingJob(
        id=row.id,
        tenant=row.tenant,
        due_at=row.due_at,
        segments=[
            WaitingSegment(index, due_at, max(1, chars) / CHARS_PER_AUDIO_S)
            for due_at, index, chars in heads[:most]
        ],
        more=len(heads) > most,
        turn_s=row.turn_s,
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a pool: its state, and the audio seconds that it and the others ever sent."""

    state: PoolState
    sent_s: float
    elsewhere_s: float


_POOLS = select(t.pool.c.name, t.pool.c.state)


def load(conn: Connection, pool: str) -> Kept:
    """What a pool remembers of the choices before."""
    kept = {row.name: row.state for row in conn.execute(_POOLS)}
    elsewhere_s = sum(raw["sent_s"] for name, raw in kept.items() if name != pool)
    if pool not in kept:
        return Kept(PoolState(), 0.0, elsewhere_s)
    mine = kept[pool]
    tiers = {Tier(name): TierState(*values) for name, values in mine["tiers"].items()}
    return Kept(PoolState(tiers, mine["owed_s"], mine["elsewhere_s"]), mine["sent_s"], elsewhere_s)


_WRITE_POOL = upserts(t.pool, ("name",))
_WRITE_SHARES = upserts(t.tenant_share, ("tier", "tenant"))


def record(conn: Connection, pool: str, choice: Choice, *, sent_s: float) -> None:
    """Write down how the turns stand after a choice whose picks are marked.

    `sent_s` includes this choice.
    """
    state = {
        "tiers": {tier: [s.clock_s, s.fair_s] for tier, s in choice.pool.tiers.items()},
        "owed_s": choice.pool.owed_s,
        "elsewhere_s": choice.pool.elsewhere_s,
        "sent_s": sent_s,
    }
    shares = [
        {"tier": tier, "tenant": tenant, "turn_s": share.turn_s, "clock_s": share.clock_s}
        for (tier, tenant), share in choice.tenants.items()
    ]
    conn.execute(_WRITE_POOL[conn.dialect.name], [{"name": pool, "state": state}])
    conn.execute(_WRITE_SHARES[conn.dialect.name], shares)
    charged = {"the_jobs": as_rows(choice.jobs.items())}
    _hold(conn, charged)
    conn.execute(_CHARGE, charged)


# A paused job sends nothing, so it has no head: it is in nobody's way.
_HEAD = case(
    (t.job.c.paused, null()),
    else_=select(func.min(t.segment.c.due_at))
    .where(t.segment.c.job_id == t.job.c.id, t.IS_PENDING)
    .correlate(t.job)
    .scalar_subquery(),
)
_JOBS = given("the_jobs")
# The row is locked first and counted in a statement of its own: that one sees what all those wrote
# who held the row before. One that waits for the row while it counts would not.
_HOLD = (
    select(t.job.c.id)
    .where(t.job.c.id.in_(select(field(_JOBS, 0, String))))
    .order_by(t.job.c.id)
    .with_for_update(key_share=True)
)
_REFRESH = (
    update(t.job).where(t.job.c.id.in_(select(field(_JOBS, 0, String)))).values(head_due_at=_HEAD)
)
_CHARGE = (
    update(t.job)
    .where(t.job.c.id == field(_JOBS, 0, String))
    .values(turn_s=field(_JOBS, 1, Float), head_due_at=_HEAD)
)


def refresh_heads(conn: Connection, job_ids: Collection[str]) -> None:
    """Set when the first waiting segment of these jobs is due; null when none may be sent.

    Call it from every transaction that lets segments wait, or takes waiting ones away.
    """
    if job_ids:
        refreshed = {"the_jobs": as_rows([job_id] for job_id in set(job_ids))}
        _hold(conn, refreshed)
        conn.execute(_REFRESH, refreshed)


def _hold(conn: Connection, jobs: Mapping[str, str]) -> None:
    """Lock these jobs until the transaction ends. On SQLite the transaction excludes all others."""
    if conn.dialect.name == "postgresql":
        conn.execute(_HOLD, jobs)


def find_forgotten(conn: Connection) -> int:
    """Let jobs wait again whose waiting segments nobody noted. Returns how many there were."""
    forgotten = conn.execute(
        select(t.job.c.id).where(
            t.job.c.state == "rendering",
            t.job.c.head_due_at.is_(None),
            t.job.c.paused.is_(False),
            select(t.segment.c.job_id)
            .where(t.segment.c.job_id == t.job.c.id, t.IS_PENDING)
            .correlate(t.job)
            .exists(),
        )
    )
    job_ids = forgotten.scalars().all()
    refresh_heads(conn, job_ids)
    return len(job_ids)
