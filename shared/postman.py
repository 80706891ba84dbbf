"""Handing out deliveries: the bounded set of webhooks' events that Redis holds at a time.

As with segments, a delivery is marked in the ledger before it is published, and `recover_lost`
finds what the broker forgot.
"""

import logging
from dataclasses import dataclass

from shared.broker import Broker, delivery_task_id
from shared.crashpoints import crash_point
from shared.errors import BrokerError
from shared.ledger import handing_out
from shared.ledger.database import Database
from shared.ledger.handing_out import Slots
from shared.messages import DELIVERY_QUEUE
from shared.settings import Settings
from shared.webhooks import Standing

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Postman:
    """Moves deliveries from the ledger to their queue. Any process may hold one."""

    database: Database
    broker: Broker
    settings: Settings

    def send_due(self) -> int:
        """Send what is due, as far as there are slots. Returns how many.

        When Redis is away they stay marked, and `recover_lost` sends them later.
        """
        if not self.database.read(handing_out.is_anything_due):
            return 0
        slots = slots_of(self.settings)
        messages = self.database.transact(lambda conn: handing_out.dispatch(conn, slots))
        crash_point("webhook.marked")
        try:
            self.broker.send_deliveries(messages)
        except BrokerError as error:
            log.warning("could not publish, the scheduler will send again: %s", error)
        return len(messages)

    def recover_lost(self) -> int:
        """Return dispatches that the broker no longer holds to the waiting ones.

        Raises BrokerError when Redis cannot be asked: then nothing is known to be lost.
        """
        count = self.database.read(handing_out.dispatched_count)
        if not count or count <= self.broker.held(DELIVERY_QUEUE):
            return 0
        age_s = self.settings.redispatch_after_s
        suspects = self.database.read(lambda conn: handing_out.dispatched_before(conn, age_s))
        held = self.broker.held_ids(DELIVERY_QUEUE)
        lost = [message for message in suspects if delivery_task_id(message) not in held]
        if not lost:
            return 0
        return self.database.transact(lambda conn: handing_out.take_back_lost(conn, lost))


def slots_of(settings: Settings) -> dict[Standing, Slots]:
    """How the slots are shared out, measured by one deliver worker, which may be the only one.

    Webhooks that are not known to answer get one try at a time each, and together at most three
    quarters of a worker's threads, so that those that answer always find one.
    """
    threads = settings.webhook_threads
    return {
        Standing.GOOD: Slots(settings.webhook_window, settings.webhook_concurrency),
        Standing.NEW: Slots(threads // 2, 1),
        Standing.FAILING: Slots(threads // 4, 1),
    }
