"""Objects of the store as the ledger knows them: how many rows point to each, and which may go.

An object lives while `refs` is above zero. The last reference to go condemns it, from then or from
later on; until it is doomed, a new reference saves it. What is doomed is deleted from the store,
and then its row. Every move is made under the row's lock, so nobody comes to point to an object
that is being deleted. Knows no bytes and no store.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Float, bindparam, case, delete, exists, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock

_o = t.stored_object.c
_ASKED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Keeping:
    """How an object is kept: its references, and whether its end has been decided."""

    refs: int
    ends: bool


def _refer(insert: type[sqlite.Insert] | type[postgresql.Insert]) -> Insert:
    statement = insert(t.stored_object).values(
        key=bindparam("the_key"),
        tenant=bindparam("the_tenant"),
        job_id=bindparam("the_job"),
        refs=bindparam("the_refs"),
        created_at=db_now(),
    )
    return statement.on_conflict_do_update(
        index_elements=["key"],
        set_={"refs": _o.refs + statement.excluded.refs, "condemned_at": None},
    )


_REFER = {"sqlite": _refer(sqlite.Insert), "postgresql": _refer(postgresql.Insert)}


def refer(conn: Connection, tenant: str, job_id: str, counts: Mapping[str, int]) -> None:
    """Add references of a job: to objects that it has just stored, or holds by `lock_usable`."""
    if counts:
        rows = [
            {"the_key": key, "the_tenant": tenant, "the_job": job_id, "the_refs": counts[key]}
            for key in sorted(counts)
        ]
        conn.execute(_REFER[conn.dialect.name], rows)


def lock_usable(conn: Connection, keys: Collection[str]) -> frozenset[str]:
    """Which of these objects may be referred to; they stay so until the transaction ends."""
    if not keys:
        return frozenset()
    rows = conn.execute(
        select(_o.key)
        .where(_o.key.in_(keys), _o.doomed_at.is_(None))
        .order_by(_o.key)  # locks are taken in one order
        .with_for_update()
    )
    return frozenset(rows.scalars())


# Who stored it may have asked for it to go, when only others still held it.
_IS_UNWANTED = exists().where(t.job.c.id == _o.job_id, t.job.c.deleted_at.is_not(None))
_REST_S = case((_IS_UNWANTED, 0.0), else_=bindparam("the_rest_s", type_=Float))
_RELEASE = (
    update(t.stored_object)
    .where(_o.key == bindparam("the_key"))
    .values(
        refs=_o.refs - bindparam("the_refs"),
        condemned_at=case(
            (_o.refs <= bindparam("the_refs"), db_now() + _REST_S),
            else_=_o.condemned_at,
        ),
    )
)


def release(conn: Connection, counts: Mapping[str, int], *, keep_s: float) -> None:
    """Take references back; who loses the last one is condemned in `keep_s` seconds.

    At once, if the job that stored it was deleted by its owner.
    """
    if counts:
        conn.execute(
            _RELEASE,
            [
                {"the_key": key, "the_refs": counts[key], "the_rest_s": keep_s}
                for key in sorted(counts)
            ],
        )


def condemn_now(conn: Connection, job_id: str) -> None:
    """Let nothing that a job stored, and nobody refers to, wait any longer to be condemned."""
    now = read_clock(conn)
    conn.execute(
        update(t.stored_object)
        .where(_o.job_id == job_id, _o.refs <= 0, _o.condemned_at > now)
        .values(condemned_at=now)
    )


def doom(conn: Connection, *, grace_s: float, limit: int) -> list[str]:
    """Decide the end of objects condemned for `grace_s`; returns their keys, to be deleted.

    The condition is checked again under each row's lock: a reference added meanwhile saves it.
    """
    now = read_clock(conn)
    past_saving = (
        t.IS_CONDEMNED & (_o.condemned_at <= now - grace_s) & (_o.refs <= 0)
    ) & _o.doomed_at.is_(None)
    some = select(_o.key).where(past_saving).order_by(_o.condemned_at).limit(limit)
    rows = conn.execute(
        update(t.stored_object)
        .where(_o.key.in_(some.scalar_subquery()), past_saving)
        .values(doomed_at=now)
        .returning(_o.key)
    )
    return list(rows.scalars())


def left_doomed(conn: Connection, *, after_s: float, limit: int) -> list[str]:
    """Objects whose deletion somebody began more than `after_s` ago and did not see through."""
    rows = conn.execute(
        select(_o.key)
        .where(t.IS_CONDEMNED, _o.doomed_at <= read_clock(conn) - after_s)
        .limit(limit)
    )
    return list(rows.scalars())


def forget(conn: Connection, keys: Collection[str]) -> None:
    """Remove the rows of doomed objects that are out of the store; what names them goes too."""
    if keys:
        gone = _o.key.in_(keys) & _o.doomed_at.is_not(None)
        conn.execute(delete(t.stored_object).where(gone))


def is_known(conn: Connection, key: str) -> bool:
    """Whether an object has been committed. Ask before deleting what seems to have lost."""
    return conn.execute(select(_o.key).where(_o.key == key)).one_or_none() is not None


def stored_by(conn: Connection, job_id: str) -> frozenset[str]:
    """Keys of all objects that a job stored and the ledger knows."""
    rows = conn.execute(select(_o.key).where(_o.job_id == job_id))
    return frozenset(rows.scalars())


def keeping(conn: Connection, keys: Collection[str]) -> dict[str, Keeping]:
    """How those of these objects are kept that the ledger knows."""
    found = {}
    ordered = sorted(keys)
    for first in range(0, len(ordered), _ASKED_AT_ONCE):
        some = ordered[first : first + _ASKED_AT_ONCE]
        rows = conn.execute(
            select(_o.key, _o.refs, _o.condemned_at, _o.doomed_at).where(_o.key.in_(some))
        )
        for row in rows:
            ends = row.condemned_at is not None or row.doomed_at is not None
            found[row.key] = Keeping(row.refs, ends)
    return found
