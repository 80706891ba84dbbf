"""When a webhook may be sent to next: the one column that handing out goes by, kept true here."""

from typing import Any

from sqlalchemy import Connection, Row, func, or_, select, update

from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.webhooks import DeliveryState, Standing

DISABLED = "the webhook is disabled"


def lock(conn: Connection, webhook_id: str) -> Row[Any] | None:
    """Hold a webhook's row until the transaction ends; None when it is gone.

    Its deliveries are changed under this lock only, so that `next_at` never lies.
    """
    return conn.execute(
        select(t.webhook).where(t.webhook.c.id == webhook_id).with_for_update()
    ).one_or_none()


def refresh(conn: Connection, webhook_id: str, *, each: int | None = None) -> None:
    """Work out when something may be sent next, if anything waits. Call under `lock`.

    While `each` deliveries are under way (one, to a webhook that is not known to answer) nothing
    may be: who settles one of them looks again. Nothing waits for a disabled webhook: what was
    under way when it was disabled, or came at that moment, has failed like the rest.
    """
    c = t.webhook.c
    row = conn.execute(
        select(
            c.standing, c.disabled_at, c.held_until, _FIRST.label("first"), _FLYING.label("flying")
        ).where(c.id == webhook_id)
    ).one_or_none()
    if row is None:
        return
    if row.disabled_at is not None:
        fail_waiting(conn, webhook_id)
    most = 1 if row.standing != Standing.GOOD else each
    busy = most is not None and row.flying >= most
    idle = row.first is None or row.disabled_at is not None
    conn.execute(
        update(t.webhook)
        .where(c.id == webhook_id)
        .values(next_at=None if busy or idle else max(row.first, row.held_until))
    )


def fail_waiting(conn: Connection, webhook_id: str) -> None:
    """Fail whatever waits for a disabled webhook. Call under `lock`."""
    c = t.delivery.c
    waits = or_(t.IS_PENDING_DELIVERY, c.state == DeliveryState.DISPATCHED)
    conn.execute(
        update(t.delivery)
        .where(c.webhook_id == webhook_id, waits)
        .values(state=DeliveryState.FAILED, done_at=read_clock(conn), error=DISABLED)
    )


def find_forgotten(conn: Connection) -> int:
    """Wake webhooks for which something waits although they say nothing does. Returns how many."""
    c = t.webhook.c
    waiting = of_webhook(t.delivery.c.id, t.IS_PENDING_DELIVERY).exists()
    found = conn.execute(
        update(t.webhook)
        .where(c.next_at.is_(None), c.disabled_at.is_(None), waiting)
        .values(next_at=read_clock(conn))
    )
    return found.rowcount


def of_webhook(what: Any, condition: Any) -> Any:  # noqa: ANN401 - SQL
    """A query about the deliveries of the webhook in the query around it."""
    return (
        select(what)
        .where(condition, t.delivery.c.webhook_id == t.webhook.c.id)
        .correlate(t.webhook)
    )


_FIRST = of_webhook(func.min(t.delivery.c.not_before), t.IS_PENDING_DELIVERY).scalar_subquery()
_FLYING = of_webhook(func.count(t.delivery.c.id), t.IS_DELIVERY_IN_FLIGHT).scalar_subquery()
