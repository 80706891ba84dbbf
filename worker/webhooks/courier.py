"""Carries deliveries: claims one, sends it, settles it, and goes on with its webhook's next one.

Going on spares the broker and the ledger a round for every event of a busy webhook; after a
second the thread is handed back, so that no webhook keeps it from the others.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from shared.crashpoints import crash_point
from shared.errors import TransientError
from shared.farm import Farm
from shared.ledger import deliveries, outbox
from shared.ledger.deliveries import DeliveryClaim
from shared.messages import MESSAGE_VERSION, DeliveryMessage
from shared.settings import Settings
from shared.webhook_secrets import SigningSecrets
from shared.webhooks import Outcome, Verdict
from worker.webhooks.deciding import RetryRules, decide
from worker.webhooks.payload import payload
from worker.webhooks.sending import Sender
from worker.webhooks.signing import signed_headers

log = logging.getLogger(__name__)
_GOES_ON_S = 1.0
_WRONG_SECRET = "the farm's processes have different root secrets"  # noqa: S105 - words


@dataclass(frozen=True, slots=True)
class Courier:
    """Carries out delivery messages. Thread-safe."""

    farm: Farm
    sender: Sender
    secrets: SigningSecrets
    rules: RetryRules
    draw: Callable[[], float] = random.random

    def run(self, message: DeliveryMessage) -> None:
        """Deliver, unless the message is stale. Never raises."""
        if message.v > MESSAGE_VERSION:
            log.warning("message version %d is newer than this worker", message.v)
            return
        try:
            self._run(message)
        except TransientError as error:  # the scheduler finds it, by its lease or its dispatch
            log.warning("delivery %s is left to the scheduler: %s", message.delivery_id, error)
        except Exception:
            log.exception("delivery %s failed", message.delivery_id)

    def _run(self, message: DeliveryMessage) -> None:
        until_s = time.monotonic() + _GOES_ON_S
        transact = self.farm.database.transact
        claimed = transact(lambda conn: self._claimed(conn, message))
        while claimed is not None:
            crash_point("webhook.claimed")
            outcome = self._attempt(claimed)
            crash_point("webhook.sent")
            go_on = time.monotonic() < until_s
            claimed = transact(
                lambda conn, c=claimed, o=outcome, g=go_on: self._settle(conn, c, o, go_on=g)  # type: ignore[misc]
            )
            crash_point("webhook.settled")
        self.farm.postman.send_due()

    def _claimed(self, conn: Connection, message: DeliveryMessage) -> DeliveryClaim | None:
        return self._with_body(
            conn, deliveries.claim(conn, message, lease_s=lease_s(self.farm.settings))
        )

    def _settle(
        self, conn: Connection, claimed: DeliveryClaim, outcome: Outcome, *, go_on: bool
    ) -> DeliveryClaim | None:
        """Settle, and claim the webhook's next delivery if there is time."""
        draw = self.draw()

        def verdict(failures: int) -> Verdict:
            return decide(self.rules, outcome, tries=claimed.tries, failures=failures, draw=draw)

        deliveries.settle(conn, claimed, outcome, verdict)
        if not go_on:
            return None
        following = deliveries.claim_next(
            conn,
            claimed.secret.webhook_id,
            each=self.farm.settings.webhook_concurrency,
            lease_s=lease_s(self.farm.settings),
        )
        return self._with_body(conn, following)

    def _with_body(self, conn: Connection, claimed: DeliveryClaim | None) -> DeliveryClaim | None:
        """Make the body of an event that is sent for the first time, and keep it for good."""
        if claimed is None or claimed.body is not None:
            return claimed
        body = payload(
            claimed.event_type,
            claimed.event_at,
            claimed.data,
            public_url=self.farm.settings.public_url,
        )
        return claimed.with_body(outbox.freeze_body(conn, claimed.event_id, body))

    def _attempt(self, claimed: DeliveryClaim) -> Outcome:
        if self.secrets.mark(claimed.secret) != claimed.mark:
            log.error(
                "webhook %s was made under another root secret: give all processes the same "
                "VOXFARM_FARM_SECRET, or rotate its secret",
                claimed.secret.webhook_id,
            )
            return Outcome(None, _WRONG_SECRET, 0.0, counts=False)
        body = (claimed.body or "").encode()
        headers = signed_headers(claimed.event_id, int(claimed.at), body, self._keys(claimed))
        outcome = self.sender.send(claimed.url, headers, body)
        if not outcome.delivered:
            log.info(
                "webhook %s, delivery %s: %s",
                claimed.secret.webhook_id,
                claimed.id,
                outcome.error or outcome.status,
            )
        return outcome

    def _keys(self, claimed: DeliveryClaim) -> list[bytes]:
        keys = [self.secrets.key(claimed.secret)]
        former = claimed.secret.former
        if former is not None and (claimed.former_until or 0.0) > claimed.at:
            keys.append(self.secrets.key(former))
        return keys


def lease_s(settings: Settings) -> float:
    """How long a delivery is leased: as long as an attempt can take, and a lease for the rest."""
    return settings.webhook_timeout_s + settings.lease_s


def rules_of(settings: Settings) -> RetryRules:
    """The rules of retries by the settings."""
    return RetryRules(
        waits_s=settings.webhook_retry_s,
        retry_after_max_s=settings.webhook_retry_after_max_s,
        hold_s=settings.webhook_hold_s,
        hold_max_s=settings.webhook_hold_max_s,
    )
