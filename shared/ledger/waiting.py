"""What waits, read in the orders that an offer is made of. Knows SQL and bounds, not the policy.

Whatever waits elsewhere, a read touches no more rows than it returns, but for tenants: of those it
looks at each that waits, once. `most` bounds what is returned; a job waits while it has a head.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Float,
    Integer,
    Row,
    Select,
    String,
    bindparam,
    func,
    literal_column,
    select,
    true,
)

from shared.ledger import tables as t
from shared.ledger.given import as_rows, field, given
from shared.scheduling.offer import NEW_TENANT
from shared.tiers import Tier

# Every statement is built once: to build one takes longer than to run it.
_TIER, _NOW = bindparam("the_tier", type_=String), bindparam("the_now", type_=Float(53))
_MOST = bindparam("the_most", type_=Integer)
_j, _s, _share = t.job.c, t.segment.c, t.tenant_share.c
_WAITING: Select[Any] = select(_j.id, _j.tenant, _j.due_at, _j.head_due_at, _j.turn_s).where(
    t.IS_WAITING_TO_RENDER, _j.tier == _TIER, _j.paused.is_(False)
)
_BY_HEAD = _WAITING.order_by(_j.head_due_at, _j.id).limit(_MOST)
_ON_PACE = _WAITING.where(_j.head_due_at > _NOW).order_by(_j.head_due_at, _j.id).limit(_MOST)
_IN_TIME = _WAITING.where(_j.due_at > _NOW).order_by(_j.due_at, _j.id).limit(_MOST)


def by_head(conn: Connection, tier: Tier, most: int) -> Sequence[Row[Any]]:
    """The jobs whose first waiting segment is due first."""
    return conn.execute(_BY_HEAD, {"the_tier": tier, "the_most": most}).all()


def on_pace(conn: Connection, tier: Tier, now: float, most: int) -> Sequence[Row[Any]]:
    """The jobs whose first waiting segment is due next, after `now`."""
    return conn.execute(_ON_PACE, {"the_tier": tier, "the_now": now, "the_most": most}).all()


def in_time(conn: Connection, tier: Tier, now: float, most: int) -> Sequence[Row[Any]]:
    """The jobs that are due as a whole next, after `now`."""
    return conn.execute(_IN_TIME, {"the_tier": tier, "the_now": now, "the_most": most}).all()


def _tenants_by_turn() -> Select[Any]:
    first = (
        select(_j.tenant)
        .where(t.IS_WAITING_TO_RENDER, _j.tier == _TIER)
        .order_by(_j.tenant)
        .limit(1)
    )
    # From each tenant the index is entered anew at the next one: its jobs are not walked through.
    tenants = select(first.scalar_subquery().label("tenant")).cte("tenants", recursive=True)
    following = first.where(_j.tenant > tenants.c.tenant).correlate(tenants).scalar_subquery()
    tenants = tenants.union_all(select(following).where(tenants.c.tenant.is_not(None)))
    turn = func.coalesce(_share.turn_s, literal_column(str(NEW_TENANT.turn_s))).label("turn_s")
    its_share = (_share.tier == _TIER) & (_share.tenant == tenants.c.tenant)
    return (
        select(tenants.c.tenant, turn)
        .select_from(tenants.outerjoin(t.tenant_share, its_share))
        .where(tenants.c.tenant.is_not(None))
        .order_by(turn, tenants.c.tenant)
        .limit(_MOST)
    )


_TENANTS = _tenants_by_turn()


def tenants_by_turn(conn: Connection, tier: Tier, most: int) -> Sequence[Row[Any]]:
    """(tenant, turn_s) of the tenants with the lowest turns, of those with a waiting job."""
    return conn.execute(_TENANTS, {"the_tier": tier, "the_most": most}).all()


_WANTED = given("the_wanted")
_NAME = field(_WANTED, 0, String)
_SHARES: Select[Any] = select(_share.tenant, _share.turn_s, _share.clock_s).where(
    _share.tier == _TIER, _share.tenant.in_(select(_NAME))
)


def shares(conn: Connection, tier: Tier, tenants: Collection[str]) -> Sequence[Row[Any]]:
    """(tenant, turn_s, clock_s) of those of these tenants that were ever served."""
    wanted = as_rows([name] for name in tenants)
    return conn.execute(_SHARES, {"the_tier": tier, "the_wanted": wanted}).all()


def _of_each(found: Select[Any], owner: str, key: str) -> dict[str, Select[Any]]:
    """What `found` finds of each owner wanted by itself, in the words of each database.

    SQLite has no lateral join, but looks rows up by the keys that a subquery names; PostgreSQL
    would not do that for one owner after the other.
    """
    [table] = found.get_final_froms()
    found = found.where(table.c[owner] == _NAME).correlate(_WANTED)
    each, row = found.lateral("found"), table.alias("found")
    its_keys = row.c[key].in_(found.with_only_columns(table.c[key]))
    columns = [row.c[column.name] for column in found.selected_columns]
    return {
        "postgresql": select(each).select_from(_WANTED.join(each, true())),
        "sqlite": select(*columns).select_from(
            _WANTED.join(row, (row.c[owner] == _NAME) & its_keys)
        ),
    }


_OF_TENANTS = _of_each(
    _WAITING.order_by(_j.turn_s, _j.head_due_at, _j.id).limit(_MOST), "tenant", "id"
)


def by_turn(
    conn: Connection, tier: Tier, tenants: Collection[str], most: int
) -> Mapping[str, Sequence[Row[Any]]]:
    """The jobs of each of these tenants with the lowest turns, `most` of each."""
    wanted = as_rows([name] for name in tenants)
    where = {"the_tier": tier, "the_wanted": wanted, "the_most": most}
    found: dict[str, list[Row[Any]]] = {name: [] for name in tenants}
    for row in conn.execute(_OF_TENANTS[conn.dialect.name], where).all():
        found[row.tenant].append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row.turn_s, row.head_due_at, row.id))
    return found


_HEADS = _of_each(
    select(_s.job_id, _s.due_at, _s.index, _s.chars)
    .where(t.IS_PENDING, _s.not_before <= _NOW)
    .order_by(_s.due_at, _s.index)
    .limit(_MOST),
    "job_id",
    "index",
)


def heads(
    conn: Connection, job_ids: Collection[str], now: float, most: int
) -> Mapping[str, Sequence[tuple[float, int, int]]]:
    """(due_at, index, chars) of the first segments of each of these jobs that may be sent now."""
    wanted = as_rows([job_id] for job_id in job_ids)
    where = {"the_wanted": wanted, "the_now": now, "the_most": most}
    found: dict[str, list[tuple[float, int, int]]] = {job_id: [] for job_id in job_ids}
    for job_id, due_at, index, chars in conn.execute(_HEADS[conn.dialect.name], where).all():
        found[job_id].append((due_at, index, chars))
    for segments in found.values():
        segments.sort()
    return found
