"""What deliver workers do with webhooks' events, in any order and however late."""

from contextlib import suppress

from sqlalchemy import text

from shared.errors import ConflictError, NotFoundError
from shared.ledger import deliveries, delivery_log, handing_out, outbox, webhook_turns
from shared.ledger.deliveries import DeliveryClaim
from shared.messages import DeliveryMessage
from shared.webhooks import DeliveryState, Outcome, Verdict
from tests.contract.ledger import hooks
from tests.contract.ledger.machine.held import Held

LEASE_S = 3_600.0
GONE = 410


def hand_out(held: Held) -> None:
    for due in held.database.read(outbox.progress_due):
        held.database.transact(
            lambda conn, due=due: outbox.record_progress(conn, due, every_s=0.0)  # type: ignore[misc]
        )
    held.letters.extend(hooks.hand_out(held.database))


def claim(held: Held, message: DeliveryMessage) -> None:
    claimed = hooks.claim(held.database, message, LEASE_S)
    if claimed is not None:
        held.deliveries.append(claimed)


def claim_next(held: Held, message: DeliveryMessage) -> None:
    """Go on with whatever else waits for the same webhook."""
    claimed = hooks.claim_next(held.database, message.webhook_id)
    if claimed is not None:
        held.deliveries.append(claimed)


def settle(held: Held, claimed: DeliveryClaim, status: int) -> None:
    """An answer came: 2xx delivers, 5xx is tried again, 410 wants no more, all else is given up."""
    outcome = Outcome(status, None, 0.1)
    again = DeliveryState.PENDING if status >= 500 else DeliveryState.FAILED
    state = DeliveryState.DELIVERED if outcome.delivered else again
    hooks.settle(held.database, claimed, outcome, Verdict(state, disable=status == GONE))


def let_lease_run_out(held: Held, claimed: DeliveryClaim) -> None:
    query = text("UPDATE delivery SET lease_until = 1.0 WHERE id = :id AND state = 'leased'")
    held.database.transact(lambda conn: conn.execute(query, {"id": claimed.id}))


def take_back(held: Held) -> None:
    """Expired leases, and whatever the broker held: it has just been emptied."""
    database = held.database
    database.transact(deliveries.take_back_expired)
    lost = database.read(lambda conn: handing_out.dispatched_before(conn, -1))
    database.transact(lambda conn: handing_out.take_back_lost(conn, lost))
    database.transact(webhook_turns.find_forgotten)


def replay(held: Held, claimed: DeliveryClaim) -> None:
    """Its owner wants an event once more."""
    webhook_id = claimed.secret.webhook_id
    with suppress(ConflictError, NotFoundError):  # it is disabled, or removed with its letters
        held.database.transact(lambda conn: delivery_log.replay(conn, webhook_id, claimed.id))
