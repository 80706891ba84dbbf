"""The SQL with which a ledger can feed the dispatch policy, on SQLite and PostgreSQL.

A trial of the queries at their real size, on tables cut down to what they touch. What waits is a
column: `job.head_due_at` is when the job's first waiting segment is due, and NULL when none may be
sent (nothing waits, paused, over). Every read here is a bounded range of one index.
"""

# ruff: noqa: S608 -- statements are put together of constants here, never of values

from collections.abc import Sequence
from dataclasses import asdict
from json import dumps, loads
from math import inf
from typing import Any

from sqlalchemy import Connection, Row, text

from shared.scheduling.choose import choose
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
from shared.scheduling.pools import Pool
from shared.tiers import Tier

# The best of those tried, from 256 jobs of two segments to 32 jobs of twelve.
MOST_JOBS = 128  # of one order of urgency
MOST_TENANTS = 128
FEWEST_JOBS = 2  # of a tenant
SEGMENTS = 2, 6  # of a job, for little room and for much
MUCH_ROOM = 48

SCHEMA = """
CREATE TABLE job (
  id VARCHAR(26) PRIMARY KEY, tenant VARCHAR(64) NOT NULL, tier VARCHAR(16) NOT NULL,
  due_at DOUBLE PRECISION NOT NULL, head_due_at DOUBLE PRECISION,
  turn_s DOUBLE PRECISION NOT NULL DEFAULT 0);
CREATE INDEX ix_job_head ON job (tier, head_due_at, id) WHERE head_due_at IS NOT NULL;
CREATE INDEX ix_job_end ON job (tier, due_at, id) WHERE head_due_at IS NOT NULL;
CREATE INDEX ix_job_turn ON job (tier, tenant, turn_s, id) WHERE head_due_at IS NOT NULL;
CREATE TABLE segment (
  job_id VARCHAR(26) NOT NULL, "index" INTEGER NOT NULL, state VARCHAR(16) NOT NULL,
  due_at DOUBLE PRECISION NOT NULL, chars INTEGER NOT NULL,
  dispatch_no INTEGER NOT NULL DEFAULT 0, not_before DOUBLE PRECISION NOT NULL DEFAULT 0,
  text TEXT NOT NULL, PRIMARY KEY (job_id, "index"));
CREATE INDEX ix_segment_waiting ON segment (job_id, "index") WHERE state = 'pending';
CREATE TABLE tenant_share (
  tier VARCHAR(16) NOT NULL, tenant VARCHAR(64) NOT NULL, waiting BOOLEAN NOT NULL,
  turn_s DOUBLE PRECISION NOT NULL, clock_s DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (tier, tenant));
CREATE INDEX ix_tenant_turn ON tenant_share (tier, turn_s, tenant) WHERE waiting;
CREATE TABLE pool (name VARCHAR(16) PRIMARY KEY, state TEXT NOT NULL);
"""

_JOB = "id, tenant, due_at, head_due_at, turn_s"
_WAITING = f"SELECT {_JOB} FROM job WHERE tier = :tier AND head_due_at IS NOT NULL"
_BY_HEAD = text(f"{_WAITING} ORDER BY head_due_at, id LIMIT :most")
_ON_PACE = text(f"{_WAITING} AND head_due_at > :now ORDER BY head_due_at, id LIMIT :most")
_BY_END = text(f"{_WAITING} AND due_at > :now ORDER BY due_at, id LIMIT :most")
_TENANTS = text(
    "SELECT tenant, turn_s, clock_s FROM tenant_share WHERE tier = :tier AND waiting"
    " ORDER BY turn_s, tenant LIMIT :most"
)
_SHARES = {
    "sqlite": text(
        "SELECT tenant, turn_s, clock_s FROM tenant_share WHERE tier = :tier"
        " AND tenant IN (SELECT value FROM json_each(:names))"
    ),
    "postgresql": text(
        "SELECT tenant, turn_s, clock_s FROM tenant_share WHERE tier = :tier"
        " AND tenant IN (SELECT json_array_elements_text(CAST(:names AS json)))"
    ),
}
_OF_TENANTS = text(
    "SELECT j.* FROM json_array_elements_text(CAST(:names AS json)) AS n(tenant)"
    f" CROSS JOIN LATERAL ({_WAITING} AND tenant = n.tenant"
    " ORDER BY turn_s, id LIMIT :most) AS j"
)
_HEADS = {
    # The bound is read once for each job, so that no more rows are touched than are wanted.
    "sqlite": text(
        'SELECT s.job_id, s."index", s.due_at, s.chars FROM json_each(:ids) AS w'
        " CROSS JOIN segment AS s ON s.job_id = w.value AND s.state = 'pending'"
        ' AND s."index" <= coalesce((SELECT x."index" FROM segment AS x'
        " WHERE x.job_id = w.value AND x.state = 'pending' AND x.not_before <= :now"
        ' ORDER BY x."index" LIMIT 1 OFFSET :most - 1), 2147483647)'
        ' WHERE s.not_before <= :now ORDER BY s.job_id, s."index"'
    ),
    "postgresql": text(
        "SELECT s.* FROM json_array_elements_text(CAST(:ids AS json)) AS w(id)"
        ' CROSS JOIN LATERAL (SELECT job_id, "index", due_at, chars FROM segment'
        " WHERE job_id = w.id AND state = 'pending' AND not_before <= :now"
        ' ORDER BY "index" LIMIT :most) AS s ORDER BY s.job_id, s."index"'
    ),
}
_SEND = {
    "sqlite": text(
        "UPDATE segment SET state = 'dispatched', dispatch_no = dispatch_no + 1"
        ' WHERE (job_id, "index") IN (SELECT value ->> 0, value ->> 1 FROM json_each(:picks))'
        " AND state = 'pending'"
    ),
    "postgresql": text(
        "UPDATE segment SET state = 'dispatched', dispatch_no = dispatch_no + 1"
        " FROM json_array_elements(CAST(:picks AS json)) AS p(row)"
        ' WHERE job_id = p.row ->> 0 AND "index" = CAST(p.row ->> 1 AS integer)'
        " AND state = 'pending'"
    ),
}
_NEXT_HEAD = (
    "(SELECT x.due_at FROM segment AS x WHERE x.job_id = job.id AND x.state = 'pending'"
    ' ORDER BY x."index" LIMIT 1)'
)
_CHARGE_JOBS = {
    "sqlite": text(
        f"UPDATE job SET turn_s = v.value ->> 1, head_due_at = {_NEXT_HEAD}"
        " FROM json_each(:turns) AS v WHERE job.id = v.value ->> 0"
    ),
    "postgresql": text(
        "UPDATE job SET turn_s = CAST(v.row ->> 1 AS double precision),"
        f" head_due_at = {_NEXT_HEAD}"
        " FROM json_array_elements(CAST(:turns AS json)) AS v(row) WHERE job.id = v.row ->> 0"
    ),
}
_CHARGE_TENANTS = {
    "sqlite": text(
        "INSERT INTO tenant_share (tier, tenant, waiting, turn_s, clock_s)"
        " SELECT value ->> 0, value ->> 1, true, value ->> 2, value ->> 3"
        " FROM json_each(:shares) WHERE true ON CONFLICT (tier, tenant)"
        " DO UPDATE SET turn_s = excluded.turn_s, clock_s = excluded.clock_s"
    ),
    "postgresql": text(
        "INSERT INTO tenant_share (tier, tenant, waiting, turn_s, clock_s)"
        " SELECT r ->> 0, r ->> 1, true, CAST(r ->> 2 AS double precision),"
        " CAST(r ->> 3 AS double precision) FROM json_array_elements(CAST(:shares AS json)) AS v(r)"
        " ON CONFLICT (tier, tenant)"
        " DO UPDATE SET turn_s = excluded.turn_s, clock_s = excluded.clock_s"
    ),
}
# A tenant with nothing left to send leaves the index; who adds or resumes a job sets it again.
_REST_TENANTS = {
    dialect: text(
        "UPDATE tenant_share SET waiting = false"
        f" WHERE (tier, tenant) IN ({served}) AND NOT EXISTS (SELECT 1 FROM job"
        " WHERE job.tier = tenant_share.tier AND job.tenant = tenant_share.tenant"
        " AND job.head_due_at IS NOT NULL)"
    )
    for dialect, served in {
        "sqlite": "SELECT value ->> 0, value ->> 1 FROM json_each(:shares)",
        "postgresql": "SELECT r ->> 0, r ->> 1"
        " FROM json_array_elements(CAST(:shares AS json)) AS v(r)",
    }.items()
}


def fill(conn: Connection, pool: Pool, *, room: int, now_s: float, chars_per_s: float) -> int:
    """One filling of a pool's window under its lock; returns how many segments were marked."""
    row = conn.execute(
        text("SELECT state FROM pool WHERE name = :name"), {"name": pool.name}
    ).scalar_one_or_none()
    state, sent = _state(row), 0
    while sent < room:
        offers = [
            offer
            for tier in pool.tiers
            if (offer := _offer(conn, tier, room - sent, now_s, chars_per_s))
        ]
        if not offers:
            break
        choice = choose(pool, offers, state, room=room - sent, now_s=now_s)
        state = choice.pool
        _apply(conn, choice)
        sent += len(choice.picks)
        if not choice.short:
            break
    conn.execute(
        text(
            "INSERT INTO pool (name, state) VALUES (:name, :state)"
            " ON CONFLICT (name) DO UPDATE SET state = excluded.state"
        ),
        {"name": pool.name, "state": dumps(asdict(state))},
    )
    return sent


def _offer(
    conn: Connection, tier: Tier, room: int, now_s: float, chars_per_s: float
) -> TierOffer | None:
    dialect = conn.dialect.name
    urgent = min(room, MOST_JOBS)
    limits = {"tier": tier, "now": now_s, "most": urgent + 1}
    by_head = conn.execute(_BY_HEAD, limits).all()
    if not by_head:
        return None
    jobs = {row.id: row for row in by_head[:urgent]}
    rest = Rest()
    if len(by_head) > urgent:  # else everything that waits is here already
        on_pace = conn.execute(_ON_PACE, limits).all()
        by_end = conn.execute(_BY_END, limits).all()
        jobs |= {row.id: row for row in [*on_pace[:urgent], *by_end[:urgent]]}
        marks = [row.head_due_at for row in on_pace[urgent:]]
        marks += [row.due_at for row in by_end[urgent:]]
        few = min(room, MOST_TENANTS)
        tenants = conn.execute(_TENANTS, {"tier": tier, "most": few + 1}).all()
        each = max(FEWEST_JOBS, room // len(tenants))
        turns = {row.tenant: -inf for row in jobs.values()}
        names = [row.tenant for row in tenants[:few]]
        for name, mine in _of_tenants(conn, tier, names, each + 1).items():
            jobs |= {row.id: row for row in mine[:each]}
            turns[name] = mine[each].turn_s if len(mine) > each else inf
        rest = Rest(
            deadline_at=min(marks, default=inf),
            head_due_at=by_head[urgent].head_due_at,
            tenant_turn_s=tenants[few].turn_s if len(tenants) > few else inf,
            job_turn_s=turns,
        )
    shares = conn.execute(
        _SHARES[dialect], {"tier": tier, "names": dumps(sorted({r.tenant for r in jobs.values()}))}
    )
    heads = max(SEGMENTS[room >= MUCH_ROOM], -(-2 * room // len(jobs)))
    segments: dict[str, list[WaitingSegment]] = {job_id: [] for job_id in jobs}
    wanted = {"ids": dumps(list(jobs)), "most": heads + 1, "now": now_s}
    for row in conn.execute(_HEADS[dialect], wanted):
        job_id, index, due_at, chars = row
        segments[job_id].append(WaitingSegment(index, due_at, max(chars, 1) / chars_per_s))
    return TierOffer(
        tier=tier,
        jobs=[
            WaitingJob(
                job_id,
                row.tenant,
                row.due_at,
                segments[job_id][:heads],
                more=len(segments[job_id]) > heads,
                turn_s=row.turn_s,
            )
            for job_id, row in jobs.items()
            if segments[job_id]
        ],
        tenants={row.tenant: TenantShare(row.turn_s, row.clock_s) for row in shares},
        rest=rest,
    )


def _of_tenants(
    conn: Connection, tier: Tier, names: Sequence[str], most: int
) -> dict[str, list[Row[Any]]]:
    if conn.dialect.name == "postgresql":
        rows = conn.execute(_OF_TENANTS, {"tier": tier, "names": dumps(names), "most": most}).all()
    else:  # no LATERAL there: as many bounded selects as tenants, in one statement
        one = f"SELECT * FROM ({_WAITING} AND tenant = :n{{}} ORDER BY turn_s, id LIMIT :most)"
        union = " UNION ALL ".join(one.format(n) for n in range(len(names)))
        values = {f"n{n}": name for n, name in enumerate(names)}
        rows = conn.execute(text(union), {"tier": tier, "most": most, **values}).all()
    found: dict[str, list[Row[Any]]] = {name: [] for name in names}
    for row in rows:
        found[row.tenant].append(row)
    return found


def _apply(conn: Connection, choice: Choice) -> None:
    dialect = conn.dialect.name
    picks = dumps([(pick.job_id, pick.index) for pick in choice.picks])
    conn.execute(_SEND[dialect], {"picks": picks})
    conn.execute(_CHARGE_JOBS[dialect], {"turns": dumps(list(choice.jobs.items()))})
    shares = dumps(
        [
            (tier, tenant, share.turn_s, share.clock_s)
            for (tier, tenant), share in choice.tenants.items()
        ]
    )
    conn.execute(_CHARGE_TENANTS[dialect], {"shares": shares})
    conn.execute(_REST_TENANTS[dialect], {"shares": shares})


def _state(row: str | None) -> PoolState:
    if row is None:
        return PoolState()
    raw = loads(row)
    tiers = {Tier(name): TierState(**fields) for name, fields in raw["tiers"].items()}
    return PoolState(tiers, raw["owed_s"], raw["elsewhere_s"])
