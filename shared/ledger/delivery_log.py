"""What became of a webhook's events, for its owner to read, and to have sent again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, select, update

from shared.errors import ConflictError, NotFoundError
from shared.ledger import tables as t
from shared.ledger import webhook_turns
from shared.ledger.clock import read_clock
from shared.webhooks import DeliveryState, EventType

_OVER = (DeliveryState.DELIVERED, DeliveryState.FAILED, DeliveryState.DROPPED)


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One event on its way to one webhook. `next_at`: when it is tried again, if it is."""

    id: str
    webhook_id: str
    event_id: str
    event_type: EventType
    job_id: str | None
    state: DeliveryState
    attempts: int
    created_at: float
    next_at: float | None
    done_at: float | None
    status: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try. `status` None: there was no answer."""

    number: int
    at: float
    duration_s: float
    status: int | None
    error: str | None


def get(conn: Connection, webhook_id: str, delivery_id: str) -> DeliveryRecord:
    """One delivery of a webhook. Raises NotFoundError."""
    row = conn.execute(
        _SELECT.where(t.delivery.c.id == delivery_id, t.delivery.c.webhook_id == webhook_id)
    ).one_or_none()
    if row is None:
        raise NotFoundError("there is no such delivery", code="delivery-not-found")
    return _record(row)


def attempts(conn: Connection, delivery_id: str) -> list[Attempt]:
    """Every try of a delivery, in order."""
    c = t.delivery_attempt.c
    rows = conn.execute(
        select(*(c[name] for name in Attempt.__slots__))
        .where(c.delivery_id == delivery_id)
        .order_by(c.number)
    )
    return [Attempt(**row._asdict()) for row in rows]


def page(
    conn: Connection,
    webhook_id: str,
    *,
    limit: int,
    before_id: str | None = None,
    states: Sequence[DeliveryState] = (),
) -> list[DeliveryRecord]:
    """Newest first; pass the last id of a page as `before_id` for the next one."""
    c = t.delivery.c
    query = _SELECT.where(c.webhook_id == webhook_id)
    if before_id is not None:
        query = query.where(c.id < before_id)
    if states:
        query = query.where(c.state.in_(states))
    return [_record(row) for row in conn.execute(query.order_by(c.id.desc()).limit(limit))]


def replay(conn: Connection, webhook_id: str, delivery_id: str) -> None:
    """Send one delivery again now, with its id and body. What is under way is left alone.

    Raises NotFoundError, or ConflictError `webhook-disabled`.
    """
    get(conn, webhook_id, delivery_id)
    _replay(conn, webhook_id, t.delivery.c.id == delivery_id, (*_OVER, DeliveryState.PENDING))


def replay_failed(conn: Connection, webhook_id: str, since: float) -> int:
    """Send again what failed of the events since then. Returns how many.

    Raises ConflictError `webhook-disabled`.
    """
    return _replay(conn, webhook_id, t.delivery.c.created_at >= since, (DeliveryState.FAILED,))


def _replay(
    conn: Connection,
    webhook_id: str,
    which: ColumnElement[bool],
    states: Sequence[DeliveryState],
) -> int:
    hook = webhook_turns.lock(conn, webhook_id)
    if hook is None:
        raise NotFoundError("there is no such webhook", code="webhook-not-found")
    if hook.disabled_at is not None:
        raise ConflictError("the webhook is disabled; enable it first", code="webhook-disabled")
    now = read_clock(conn)
    sent = conn.execute(
        update(t.delivery)
        .where(t.delivery.c.webhook_id == webhook_id, which, t.delivery.c.state.in_(states))
        .values(
            state=DeliveryState.PENDING,
            tries=0,
            not_before=now,
            round_at=now,
            done_at=None,
        )
    )
    if sent.rowcount:  # its owner says that it is there again
        conn.execute(update(t.webhook).where(t.webhook.c.id == webhook_id).values(held_until=0.0))
        webhook_turns.refresh(conn, webhook_id)
    return sent.rowcount


_SELECT: Select[Any] = select(
    *(
        t.delivery.c[name]
        for name in (
            "id",
            "webhook_id",
            "event_id",
            "state",
            "attempt",
            "created_at",
            "not_before",
            "done_at",
            "status",
            "error",
        )
    ),
    t.outbox.c.type,
    t.outbox.c.job_id,
).join_from(t.delivery, t.outbox)


def _record(row: Row[Any]) -> DeliveryRecord:
    state = DeliveryState(row.state)
    return DeliveryRecord(
        id=row.id,
        webhook_id=row.webhook_id,
        event_id=row.event_id,
        event_type=EventType(row.type),
        job_id=row.job_id,
        state=state,
        attempts=row.attempt,
        created_at=row.created_at,
        next_at=row.not_before if state is DeliveryState.PENDING else None,
        done_at=row.done_at,
        status=row.status,
        error=row.error,
    )
