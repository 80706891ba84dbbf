"""What waits, offered to the scheduling policy in bounded queries, and its choice written down.

Each query reads a slice of one index, so its cost does not grow with the jobs that wait. A job's
`head_due_at` says that it has waiting segments, and when the first of them is due.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from sqlalchemy import Connection, Select, func, select, update

from shared.ledger import tables as t
from shared.ledger.upsert import upsert
from shared.scheduling.offer import (
    NEW_TENANT,
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
    j = t.job.c
    limit = min(room, URGENT_JOBS)
    rows: dict[str, Any] = {}
    head_due_at = deadline_at = inf
    by_head = _waiting(tier).order_by(j.head_due_at, j.id)
    by_end = _waiting(tier).order_by(j.due_at, j.id)
    first = conn.execute(by_head.limit(limit + 1)).all()
    rows |= {row.id: row for row in first[:limit]}
    if len(first) > limit:
        head_due_at = first[limit].head_due_at
        for query, column in (
            (by_head.where(j.head_due_at > now), "head_due_at"),
            (by_end.where(j.due_at > now), "due_at"),
        ):
            more = conn.execute(query.limit(limit + 1)).all()
            rows |= {row.id: row for row in more[:limit]}
            if len(more) > limit:
                deadline_at = min(deadline_at, getattr(more[limit], column))
    job_turns: dict[str, float] = dict.fromkeys((row.tenant for row in rows.values()), -inf)
    tenants, tenant_turn_s = _tenants_by_turn(conn, tier, min(room, TENANTS))
    each = min(room, max(JOBS_OF_A_TENANT, room // max(1, len(tenants))))
    for tenant in tenants:
        mine = conn.execute(
            _waiting(tier)
            .where(j.tenant == tenant)
            .order_by(j.turn_s, j.head_due_at, j.id)
            .limit(each + 1)
        ).all()
        job_turns[tenant] = mine[each].turn_s if len(mine) > each else inf
        rows |= {row.id: row for row in mine[:each]}
    heads = max(2, -(-2 * room // max(1, len(rows))))
    jobs = [job for row in rows.values() if (job := _job(conn, row, heads, now)) is not None]
    return TierOffer(
        tier=tier,
        jobs=jobs,
        tenants=_shares(conn, tier, list(job_turns)),
        rest=Rest(deadline_at, head_due_at, tenant_turn_s, job_turns),
    )


def load_state(conn: Connection, pool: str) -> tuple[PoolState, float]:
    """(what a pool remembers, audio seconds it has ever sent)."""
    row = conn.execute(select(t.pool.c.state).where(t.pool.c.name == pool)).one_or_none()
    if row is None:
        return PoolState(), 0.0
    kept = row.state
    tiers = {Tier(name): TierState(*values) for name, values in kept["tiers"].items()}
    return PoolState(tiers, kept["owed_s"], kept["elsewhere_s"]), kept["sent_s"]


def record(conn: Connection, pool: str, choice: Choice, *, sent_s: float) -> None:
    """Write down how the turns stand after a choice. `sent_s` includes this choice."""
    state = {
        "tiers": {tier: [s.clock_s, s.fair_s] for tier, s in choice.pool.tiers.items()},
        "owed_s": choice.pool.owed_s,
        "elsewhere_s": choice.pool.elsewhere_s,
        "sent_s": sent_s,
    }
    upsert(conn, t.pool, ("name",), {"name": pool, "state": state})
    for (tier, tenant), share in choice.tenants.items():
        values = {"tier": tier, "tenant": tenant, "turn_s": share.turn_s, "clock_s": share.clock_s}
        upsert(conn, t.tenant_share, ("tier", "tenant"), values)
    for job_id, turn_s in choice.jobs.items():
        conn.execute(update(t.job).where(t.job.c.id == job_id).values(turn_s=turn_s))


def refresh_heads(conn: Connection, job_ids: Sequence[str]) -> None:
    """Set when the first waiting segment of these jobs is due; null when none waits.

    Call it from every transaction that lets segments wait, or takes waiting ones away.
    """
    if job_ids:
        conn.execute(
            update(t.job).where(t.job.c.id.in_(set(job_ids))).values(head_due_at=_first_due())
        )


def find_forgotten(conn: Connection) -> int:
    """Let jobs wait again whose waiting segments nobody noted. Returns how many there were."""
    forgotten = conn.execute(
        update(t.job)
        .where(
            t.job.c.state == "rendering",
            t.job.c.head_due_at.is_(None),
            select(t.segment.c.job_id)
            .where(t.segment.c.job_id == t.job.c.id, t.IS_PENDING)
            .correlate(t.job)
            .exists(),
        )
        .values(head_due_at=_first_due())
    )
    return forgotten.rowcount


def _first_due() -> Any:  # noqa: ANN401 - a scalar subquery
    return (
        select(func.min(t.segment.c.due_at))
        .where(t.segment.c.job_id == t.job.c.id, t.IS_PENDING)
        .correlate(t.job)
        .scalar_subquery()
    )


def _waiting(tier: Tier) -> Select[Any]:
    j = t.job.c
    return select(j.id, j.tenant, j.due_at, j.head_due_at, j.turn_s).where(
        t.IS_WAITING_TO_RENDER, j.tier == tier, j.paused.is_(False)
    )


def _tenants_by_turn(conn: Connection, tier: Tier, limit: int) -> tuple[list[str], float]:
    """(tenants with the lowest turns of those that wait, the turn of the next one or infinity)."""
    waiting = (
        select(t.job.c.tenant)
        .where(t.IS_WAITING_TO_RENDER, t.job.c.tier == tier, t.job.c.paused.is_(False))
        .distinct()
        .subquery()
    )
    share = t.tenant_share.c
    turn = func.coalesce(share.turn_s, NEW_TENANT.turn_s).label("turn_s")
    rows = conn.execute(
        select(waiting.c.tenant, turn)
        .select_from(
            waiting.outerjoin(
                t.tenant_share, (share.tenant == waiting.c.tenant) & (share.tier == tier)
            )
        )
        .order_by(turn, waiting.c.tenant)
        .limit(limit + 1)
    ).all()
    return [row.tenant for row in rows[:limit]], rows[limit].turn_s if len(rows) > limit else inf


def _shares(conn: Connection, tier: Tier, tenants: Sequence[str]) -> Mapping[str, TenantShare]:
    share = t.tenant_share.c
    rows = conn.execute(
        select(share.tenant, share.turn_s, share.clock_s).where(
            share.tier == tier, share.tenant.in_(tenants)
        )
    )
    return {row.tenant: TenantShare(row.turn_s, row.clock_s) for row in rows}


def _job(conn: Connection, row: Any, heads: int, now: float) -> WaitingJob | None:  # noqa: ANN401
    """A job with its first waiting segments; None when none of them may be sent yet."""
    c = t.segment.c
    found = conn.execute(
        select(c.index.label("number"), c.due_at, c.chars)
        .where(t.IS_PENDING, c.job_id == row.id, c.not_before <= now)
        .order_by(c.due_at, c.index)
        .limit(heads + 1)
    ).all()
    if not found:
        return None
    segments = [
        WaitingSegment(s.number, s.due_at, max(1, s.chars) / CHARS_PER_AUDIO_S)
        for s in found[:heads]
    ]
    return WaitingJob(
        id=row.id,
        tenant=row.tenant,
        due_at=row.due_at,
        segments=segments,
        more=len(found) > heads,
        turn_s=row.turn_s,
    )
