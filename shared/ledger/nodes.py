"""What nodes publish to the ledger: their engine's description, and that they are alive."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select

from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.ledger.upsert import upsert
from shared.scheduling.depth import Fleet
from shared.voices import EngineInfo

NODE_SILENCE_S = 15.0  # a node that has not been heard of for this long is not counted


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """An engine known to the farm, and how much of it is alive now."""

    info: EngineInfo
    nodes: int
    slots: int


def publish(conn: Connection, node_id: str, info: EngineInfo) -> None:
    """Record a node's heartbeat and its engine's description."""
    upsert(
        conn,
        t.engine,
        ("name",),
        {"name": info.name, "info": info.model_dump(mode="json"), "updated_at": db_now()},
    )
    heartbeat(conn, node_id, info)


def heartbeat(conn: Connection, node_id: str, info: EngineInfo) -> None:
    """Say that a node is alive with its engine ready."""
    upsert(
        conn,
        t.node,
        ("id", "engine"),
        {"id": node_id, "engine": info.name, "slots": info.slots, "heartbeat_at": db_now()},
    )


def withdraw(conn: Connection, node_id: str) -> None:
    """Take a node out, at its orderly end."""
    conn.execute(delete(t.node).where(t.node.c.id == node_id))


def engines(conn: Connection) -> list[EngineRecord]:
    """Every engine ever published, with the nodes that run it now."""
    alive_since = read_clock(conn) - NODE_SILENCE_S
    rows = conn.execute(
        select(
            t.engine.c.info,
            func.count(t.node.c.id).label("nodes"),
            func.coalesce(func.sum(t.node.c.slots), 0).label("slots"),
        )
        .select_from(
            t.engine.outerjoin(
                t.node,
                (t.node.c.engine == t.engine.c.name) & (t.node.c.heartbeat_at >= alive_since),
            )
        )
        .group_by(t.engine.c.name)
        .order_by(t.engine.c.name)
    )
    return [EngineRecord(EngineInfo.model_validate(row.info), row.nodes, row.slots) for row in rows]


_FLEETS = (
    select(
        t.node.c.slots,
        t.engine.c.info["pads"].as_boolean().label("pads"),
        func.count().label("nodes"),
    )
    .join_from(t.node, t.engine, t.engine.c.name == t.node.c.engine)
    .where(t.node.c.heartbeat_at >= db_now() - NODE_SILENCE_S)
    .group_by(t.node.c.engine, t.node.c.slots, "pads")
)


def fleets(conn: Connection) -> list[Fleet]:
    """The nodes that are alive, by engine: asked for with every commit."""
    return [Fleet(row.nodes, row.slots, bool(row.pads)) for row in conn.execute(_FLEETS)]


def forget_silent(conn: Connection, after_s: float = 3_600.0) -> int:
    """Delete nodes that have been silent for long. Returns how many."""
    gone = conn.execute(delete(t.node).where(t.node.c.heartbeat_at < read_clock(conn) - after_s))
    return gone.rowcount
