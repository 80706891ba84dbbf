"""Handing deliveries out: which of what is due is marked to be sent, and what the broker lost.

Each standing of webhooks has slots of its own, so that those that do not answer take none from
those that do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select, text, update

from shared.ledger import tables as t
from shared.ledger import webhook_turns
from shared.ledger.clock import read_clock
from shared.messages import DeliveryMessage
from shared.webhooks import DeliveryState, Standing

_NOTICED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Slots:
    """How many deliveries may be under way: to webhooks of this standing, and to one of them."""

    total: int
    each: int


def is_anything_due(conn: Connection) -> bool:
    """Whether something may be sent now, or has just come; a cheap look, without any lock."""
    c = t.webhook.c
    due = select(c.id).where(t.HAS_WAITING, c.next_at <= read_clock(conn)).limit(1)
    if conn.execute(due).one_or_none() is not None:
        return True
    fresh = select(t.delivery.c.id).where(t.IS_UNNOTICED_DELIVERY).limit(1)
    return conn.execute(fresh).one_or_none() is not None


def _notice(conn: Connection, slots: Mapping[Standing, Slots]) -> None:
    """Let webhooks know what has come for them since. Those locked by others: the next time."""
    c = t.webhook.c
    fresh = select(t.delivery.c.webhook_id).where(t.IS_UNNOTICED_DELIVERY).distinct()
    some = conn.execute(fresh.limit(_NOTICED_AT_ONCE)).scalars().all()
    if not some:
        return
    locked = conn.execute(
        select(c.id, c.standing).where(c.id.in_(some)).with_for_update(skip_locked=True)
    ).all()
    conn.execute(
        update(t.delivery)
        .where(t.IS_UNNOTICED_DELIVERY, t.delivery.c.webhook_id.in_([row.id for row in locked]))
        .values(noticed=True)
    )
    for row in locked:
        webhook_turns.refresh(conn, row.id, each=slots[Standing(row.standing)].each)


def dispatch(conn: Connection, slots: Mapping[Standing, Slots]) -> list[DeliveryMessage]:
    """Mark what may be sent now as dispatched, the longest due first. Returns the messages."""
    if conn.dialect.name == "postgresql":
        conn.execute(text("SELECT pg_advisory_xact_lock(hashtext('deliver'))"))
    _notice(conn, slots)
    flying = {
        row[0]: row[1]
        for row in conn.execute(
            select(t.webhook.c.standing, func.count())
            .join_from(t.delivery, t.webhook)
            .where(t.IS_DELIVERY_IN_FLIGHT)
            .group_by(t.webhook.c.standing)
        )
    }
    messages: list[DeliveryMessage] = []
    for standing, given in slots.items():
        room = given.total - flying.get(standing, 0)
        for webhook_id in _due(conn, standing, given.each, limit=room):
            take = min(room, given.each - flying_to(conn, webhook_id))
            marked = _mark(conn, webhook_id, take, given.each)
            room -= len(marked)
            messages += marked
            if room <= 0:
                break
    return messages


def _due(conn: Connection, standing: Standing, each: int, *, limit: int) -> list[str]:
    """Webhooks that may be sent to and have a slot left; locked, those locked by others not."""
    if limit <= 0:
        return []
    c = t.webhook.c
    rows = conn.execute(
        select(c.id)
        .where(
            t.HAS_WAITING,
            c.standing == standing,
            c.next_at <= read_clock(conn),
            _count_flying().correlate(t.webhook).scalar_subquery() < each,
        )
        .order_by(c.next_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return list(rows.scalars())


def _count_flying() -> Any:  # noqa: ANN401 - a SELECT
    return (
        select(func.count())
        .select_from(t.delivery)
        .where(t.IS_DELIVERY_IN_FLIGHT, t.delivery.c.webhook_id == t.webhook.c.id)
    )


def flying_to(conn: Connection, webhook_id: str) -> int:
    """How many deliveries to a webhook are under way."""
    count = select(func.count()).where(
        t.IS_DELIVERY_IN_FLIGHT, t.delivery.c.webhook_id == webhook_id
    )
    return int(conn.execute(count).scalar_one())


def due_of(webhook_id: str, now: float, limit: int) -> Any:  # noqa: ANN401 - a SELECT
    """A query for the ids of a webhook's deliveries that are due, the longest due first."""
    c = t.delivery.c
    return (
        select(c.id)
        .where(t.IS_PENDING_DELIVERY, c.webhook_id == webhook_id, c.not_before <= now)
        .order_by(c.not_before, c.id)
        .limit(limit)
    )


def _mark(conn: Connection, webhook_id: str, limit: int, each: int) -> list[DeliveryMessage]:
    now = read_clock(conn)
    if limit <= 0:
        return []
    ids = list(conn.execute(due_of(webhook_id, now, limit)).scalars())
    rows = conn.execute(
        update(t.delivery)
        .where(t.delivery.c.id.in_(ids), t.delivery.c.state == DeliveryState.PENDING)
        .values(
            state=DeliveryState.DISPATCHED,
            dispatch_no=t.delivery.c.dispatch_no + 1,
            dispatched_at=now,
        )
        .returning(t.delivery.c.id, t.delivery.c.dispatch_no)
    ).all()
    webhook_turns.refresh(conn, webhook_id, each=each)
    return [DeliveryMessage(row.id, webhook_id, row.dispatch_no) for row in rows]


def dispatched_count(conn: Connection) -> int:
    """Deliveries dispatched and claimed by nobody yet."""
    count = select(func.count()).where(
        t.IS_DELIVERY_IN_FLIGHT, t.delivery.c.state == DeliveryState.DISPATCHED
    )
    return int(conn.execute(count).scalar_one())


def dispatched_before(conn: Connection, age_s: float) -> list[DeliveryMessage]:
    """Messages of deliveries dispatched longer ago than `age_s` and claimed by nobody yet."""
    c = t.delivery.c
    rows = conn.execute(
        select(c.id, c.webhook_id, c.dispatch_no).where(
            t.IS_DELIVERY_IN_FLIGHT,
            c.state == DeliveryState.DISPATCHED,
            c.dispatched_at < read_clock(conn) - age_s,
        )
    )
    return [DeliveryMessage(row.id, row.webhook_id, row.dispatch_no) for row in rows]


def take_back_lost(conn: Connection, lost: list[DeliveryMessage]) -> int:
    """Return dispatches that the broker no longer holds to the waiting ones."""
    taken = 0
    for message in sorted(lost, key=lambda m: m.webhook_id):
        webhook_turns.lock(conn, message.webhook_id)
        back = conn.execute(
            update(t.delivery)
            .where(
                t.delivery.c.id == message.delivery_id,
                t.delivery.c.state == DeliveryState.DISPATCHED,
                t.delivery.c.dispatch_no == message.dispatch_no,
            )
            .values(state=DeliveryState.PENDING)
        )
        taken += back.rowcount
        webhook_turns.refresh(conn, message.webhook_id)
    return taken
