"""Small verbs for tests of webhooks in the ledger."""

from collections.abc import Sequence

from shared.jobs import JobState
from shared.ledger import deliveries, delivery_log, handing_out, jobs, webhooks
from shared.ledger.database import Database
from shared.ledger.deliveries import DeliveryClaim
from shared.ledger.delivery_log import DeliveryRecord
from shared.ledger.named_webhook import NamedWebhook
from shared.ledger.webhooks import WebhookRecord
from shared.messages import DeliveryMessage
from shared.postman import slots_of
from shared.settings import Settings
from shared.webhook_secrets import SigningSecrets
from shared.webhooks import DEFAULT_EVENTS, DeliveryState, EventType, Outcome, Verdict
from tests.contract.ledger.story import TARGET
from tests.factories import new_job

SECRETS = SigningSecrets(b"the root of a test")
SLOTS = slots_of(Settings())
URL = "https://h.example/hook"
GOOD = Outcome(200, None, 0.1)
BAD = Outcome(500, None, 0.1)


def named(url: str = URL, events: Sequence[EventType] = DEFAULT_EVENTS) -> NamedWebhook:
    return NamedWebhook(url, events)


def submit(database: Database, **changes: object) -> str:
    """A job; with `webhook=named(...)` one that names a webhook."""
    new = new_job(**changes)
    return database.transact(lambda conn: jobs.accept(conn, new, TARGET, SECRETS.mark)).job_id


def register(
    database: Database,
    url: str = URL,
    events: Sequence[EventType] = DEFAULT_EVENTS,
    tenant: str = "default",
) -> WebhookRecord:
    return database.transact(
        lambda conn: webhooks.register(conn, tenant, url, events, SECRETS.mark)
    )[0]


def end(database: Database, job_id: str, state: str = "completed") -> bool:
    return database.transact(lambda conn: jobs.end(conn, job_id, JobState(state)))


def look(database: Database, webhook_id: str, tenant: str = "default") -> WebhookRecord:
    return database.read(lambda conn: webhooks.get(conn, tenant, webhook_id))


def log(database: Database, webhook_id: str) -> list[DeliveryRecord]:
    """Deliveries, oldest first."""
    return database.read(lambda conn: delivery_log.page(conn, webhook_id, limit=1_000))[::-1]


def hand_out(database: Database) -> list[DeliveryMessage]:
    return database.transact(lambda conn: handing_out.dispatch(conn, SLOTS))


def claim(
    database: Database, message: DeliveryMessage, lease_s: float = 30.0
) -> DeliveryClaim | None:
    return database.transact(lambda conn: deliveries.claim(conn, message, lease_s=lease_s))


def claim_next(database: Database, webhook_id: str, each: int = 4) -> DeliveryClaim | None:
    return database.transact(
        lambda conn: deliveries.claim_next(conn, webhook_id, each=each, lease_s=30.0)
    )


def must_claim(database: Database, lease_s: float = 30.0) -> DeliveryClaim:
    [message] = hand_out(database)
    claimed = claim(database, message, lease_s)
    assert claimed is not None
    return claimed


def settle(
    database: Database,
    claimed: DeliveryClaim,
    outcome: Outcome = GOOD,
    verdict: Verdict | None = None,
) -> bool:
    follows = verdict or Verdict(
        DeliveryState.DELIVERED if outcome.delivered else DeliveryState.PENDING
    )
    return database.transact(
        lambda conn: deliveries.settle(conn, claimed, outcome, lambda _failures: follows)
    )
