"""Deliveries in the ledger: claimed and settled under fencing tokens, like segments.

Knows no network: what follows from an attempt is decided by the caller.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, or_, select, update

from shared.ledger import tables as t
from shared.ledger import webhook_turns, webhooks
from shared.ledger.clock import db_now, read_clock
from shared.ledger.handing_out import due_of, flying_to
from shared.messages import DeliveryMessage
from shared.webhook_secrets import SecretIdentity
from shared.webhooks import DeliveryState, EventType, Outcome, Standing, Verdict

_IN_FLIGHT = (DeliveryState.DISPATCHED, DeliveryState.LEASED)
ERROR_CHARS = 500


@dataclass(frozen=True, slots=True)
class DeliveryClaim:
    """A leased delivery: what to send, where, signed with what, and the token to settle it with.

    `body` None: it was never sent. `former_until`: the secret before signs too until then.
    `tries` counts those of this round, this one included; `at` is the ledger's present.
    """

    id: str
    token: int
    attempt: int
    tries: int
    event_id: str
    event_type: EventType
    event_at: float
    data: Mapping[str, Any]
    body: str | None
    url: str
    secret: SecretIdentity
    mark: str
    former_until: float | None
    at: float

    def with_body(self, body: str) -> Self:
        """The same claim, with its event's body."""
        return replace(self, body=body)


def claim(conn: Connection, message: DeliveryMessage, *, lease_s: float) -> DeliveryClaim | None:
    """Lease a delivery, or None when the message is stale."""
    c = t.delivery.c
    condition = and_(
        c.id == message.delivery_id,
        c.dispatch_no == message.dispatch_no,
        or_(
            c.state == DeliveryState.DISPATCHED,
            and_(c.state == DeliveryState.LEASED, c.lease_until < read_clock(conn)),
        ),
    )
    return _lease(conn, condition, lease_s)


def claim_next(
    conn: Connection, webhook_id: str, *, each: int, lease_s: float
) -> DeliveryClaim | None:
    """Lease what is due next for a webhook that answers well, if it has a slot left."""
    row = webhook_turns.lock(conn, webhook_id)
    now = read_clock(conn)
    if row is None or row.disabled_at is not None or row.standing != Standing.GOOD:
        return None
    if row.held_until > now or flying_to(conn, webhook_id) >= each:
        return None
    delivery_id = conn.execute(due_of(webhook_id, now, 1)).scalar_one_or_none()
    if delivery_id is None:
        return None
    condition = and_(t.delivery.c.id == delivery_id, t.delivery.c.state == DeliveryState.PENDING)
    claimed = _lease(conn, condition, lease_s)
    webhook_turns.refresh(conn, webhook_id, each=each)
    return claimed


def _lease(
    conn: Connection, condition: ColumnElement[bool], lease_s: float
) -> DeliveryClaim | None:
    now = read_clock(conn)
    c = t.delivery.c
    row = conn.execute(
        update(t.delivery)
        .where(condition)
        .values(
            state=DeliveryState.LEASED,
            attempt=c.attempt + 1,
            token=c.token + 1,
            lease_until=now + lease_s,
        )
        .returning(c.id, c.token, c.attempt, c.tries, c.event_id, c.webhook_id)
    ).one_or_none()
    if row is None:
        return None
    event = conn.execute(select(t.outbox).where(t.outbox.c.id == row.event_id)).one()
    hook = conn.execute(select(t.webhook).where(t.webhook.c.id == row.webhook_id)).one()
    return DeliveryClaim(
        id=row.id,
        token=row.token,
        attempt=row.attempt,
        tries=row.tries + 1,
        event_id=event.id,
        event_type=EventType(event.type),
        event_at=event.created_at,
        data=json.loads(event.data or "{}"),
        body=event.body,
        url=hook.url,
        secret=SecretIdentity(hook.tenant, hook.id, hook.generation),
        mark=hook.mark,
        former_until=hook.former_until,
        at=now,
    )


def settle(
    conn: Connection,
    claimed: DeliveryClaim,
    outcome: Outcome,
    decide: Callable[[int], Verdict],
) -> bool:
    """Note an attempt and what follows from it, once. False: it was not this token's to settle.

    An attempt that is noted already changes nothing: a delivery that waits again still has the
    token of its last one, so the token alone does not tell. `decide` gets the webhook's failures
    in a row, this one included. The newest token may settle past its lease, so that a slow ledger
    delays but never repeats without end.
    """
    hook = webhook_turns.lock(conn, claimed.secret.webhook_id)
    if hook is None:  # removed meanwhile, and its deliveries with it
        return False
    failures = (
        hook.failures if not outcome.counts else (0 if outcome.delivered else hook.failures + 1)
    )
    verdict = decide(failures)
    now = read_clock(conn)
    c = t.delivery.c
    a = t.delivery_attempt.c
    noted = exists().where(a.delivery_id == claimed.id, a.number == claimed.attempt)
    over = verdict.state != DeliveryState.PENDING
    settled = conn.execute(
        update(t.delivery)
        .where(
            c.id == claimed.id,
            c.token == claimed.token,
            c.state.in_((DeliveryState.PENDING, *_IN_FLIGHT)),
            ~noted,
        )
        .values(
            state=verdict.state,
            tries=c.tries + (1 if outcome.counts else 0),
            lease_until=None,
            not_before=now + verdict.delay_s,
            done_at=now if over else None,
            status=outcome.status,
            error=_brief(outcome.error),
        )
    )
    if settled.rowcount != 1:
        webhook_turns.refresh(conn, hook.id)  # the delivery may be gone, with its job
        return False
    conn.execute(
        t.delivery_attempt.insert().values(
            delivery_id=claimed.id,
            number=claimed.attempt,
            at=now - outcome.duration_s,
            duration_s=outcome.duration_s,
            status=outcome.status,
            error=_brief(outcome.error),
        )
    )
    _note_answer(conn, hook, outcome, failures, now + verdict.hold_s if verdict.hold_s else 0.0)
    if verdict.disable:
        webhooks.disable(conn, hook.id, f"it answered {outcome.status}")
    else:
        webhook_turns.refresh(conn, hook.id)
    return True


def _note_answer(
    conn: Connection, hook: Row[Any], outcome: Outcome, failures: int, held_until: float
) -> None:
    now = read_clock(conn)
    values: dict[str, object] = {"failures": failures, "held_until": held_until}
    if outcome.counts and outcome.delivered:
        values |= {"standing": Standing.GOOD, "succeeded_at": now}
    elif outcome.counts:
        values |= {"standing": Standing.FAILING, "failed_at": now}
    conn.execute(update(t.webhook).where(t.webhook.c.id == hook.id).values(**values))


def take_back_expired(conn: Connection) -> int:
    """Return deliveries whose lease ran out to the waiting ones. Returns how many.

    Their worker died, or lost the ledger: nobody knows whether they arrived, so they go again.
    """
    c = t.delivery.c
    now = read_clock(conn)
    expired = conn.execute(
        select(c.id, c.webhook_id, c.attempt)
        .where(t.IS_DELIVERY_IN_FLIGHT, c.state == DeliveryState.LEASED, c.lease_until < now)
        .order_by(c.webhook_id)
    ).all()
    taken = 0
    for row in expired:
        webhook_turns.lock(conn, row.webhook_id)
        back = conn.execute(
            update(t.delivery)
            .where(
                c.id == row.id,
                c.attempt == row.attempt,
                c.state == DeliveryState.LEASED,
                c.lease_until < now,
            )
            .values(state=DeliveryState.PENDING, lease_until=None, error="its worker was lost")
        )
        taken += back.rowcount
        webhook_turns.refresh(conn, row.webhook_id)
    return taken


def give_up_old(conn: Connection, after_s: float) -> int:
    """Fail what has waited since `after_s` behind a webhook that is held again and again."""
    c = t.delivery.c
    given_up = conn.execute(
        update(t.delivery)
        .where(t.IS_PENDING_DELIVERY, c.round_at < read_clock(conn) - after_s)
        .values(
            state=DeliveryState.FAILED,
            done_at=db_now(),
            error="given up: the webhook did not answer for too long",
        )
    )
    return given_up.rowcount


def open_counts(conn: Connection) -> dict[str, int]:
    """Deliveries that wait or are under way, by state, for metrics."""
    c = t.delivery.c
    rows = conn.execute(
        select(c.state, func.count())
        .where(or_(t.IS_PENDING_DELIVERY, t.IS_DELIVERY_IN_FLIGHT))
        .group_by(c.state)
    )
    return {row[0]: row[1] for row in rows}


def _brief(error: str | None) -> str | None:
    return None if error is None else error[:ERROR_CHARS]
