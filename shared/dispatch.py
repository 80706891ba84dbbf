"""Filling the windows: the bounded set of each pool's segments that Redis holds at a time.

Who enters is chosen in `shared.ledger.feeding`; here it is sent.

A segment is marked as dispatched in the ledger before it is published. If the publish fails or
the broker forgets, `recover_lost` finds out by comparing what both sides hold, and sends it again
under a higher dispatch number, which makes every older copy stale.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from shared.broker import Broker, segment_task_id, step_task_id
from shared.crashpoints import crash_point
from shared.errors import BrokerError
from shared.ledger import feeding, nodes, step_turns, steps
from shared.ledger.database import Database
from shared.messages import StepMessage, SynthMessage
from shared.scheduling.depth import window
from shared.scheduling.pools import Pool, pool_of
from shared.settings import Settings
from shared.tiers import Tier

log = logging.getLogger(__name__)

ROUND_S, ALIKE_SHARE = 2.0, 0.1
LOW_WATER = 0.75  # of a window: lower, and threads would idle; higher, and fills would be tiny


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Moves work from the ledger to the queues. Any process may hold one.

    `place` begins the names of its crash points, so that a test can mean one process's sending.
    """

    database: Database
    broker: Broker
    settings: Settings
    place: str = "dispatch"

    def fill(self, tier: Tier) -> int:
        """Top up the window of this tier's pool. Returns how many segments were sent.

        When Redis is away the segments stay marked and `recover_lost` sends them later.
        """
        pool = pool_of(tier)
        messages = self.database.transact(lambda conn: self._mark(conn, pool))
        crash_point(f"{self.place}.marked")
        if messages:
            self._send_quietly(lambda: self.broker.send_segments(messages))
        return len(messages)

    def _mark(self, conn: Connection, pool: Pool) -> list[SynthMessage]:
        for tier in pool.tiers:
            self.database.lock_tier(conn, tier)
        return feeding.fill(conn, pool, self._window(conn, pool) - self._in_flight(conn, pool))

    def is_low(self, conn: Connection, tier: Tier) -> bool:
        """True when a quarter of the window is free: asked with every commit."""
        pool = pool_of(tier)
        return self._in_flight(conn, pool) <= LOW_WATER * self._window(conn, pool)

    def _in_flight(self, conn: Connection, pool: Pool) -> int:
        return sum(feeding.in_flight(conn, tier) for tier in pool.tiers)

    def send_steps(self) -> int:
        """Send the steps that are next, a few of each kind ahead of the workers. Returns how many.

        Called when steps become ready, whoever's turn it is then, and when one is claimed. For a
        tenth of all time no tier goes before another, so none starves.
        """
        window = self.settings.step_window
        alike = time.time() % ROUND_S < ALIKE_SHARE * ROUND_S

        def mark(conn: Connection) -> list[StepMessage]:
            marked = step_turns.dispatch(conn, window=window, alike=alike)
            crash_point(f"{self.place}.step_marking")
            return marked

        messages = self.database.transact(mark)
        crash_point(f"{self.place}.step_marked")
        if messages:
            self._send_quietly(lambda: self.broker.send_steps(messages))
        crash_point(f"{self.place}.step_sent")
        return len(messages)

    def recover_lost(self) -> int:
        """Return dispatches that the broker no longer holds to the waiting ones.

        Counts come first; identities are read only where the ledger counts more than the broker.
        Raises BrokerError when Redis cannot be asked: then nothing is known to be lost.
        """
        return sum(self._recover_segments(tier) for tier in Tier) + self._recover_steps()

    def _recover_segments(self, tier: Tier) -> int:
        age_s = self.settings.redispatch_after_s
        in_flight = self.database.read(lambda conn: feeding.in_flight(conn, tier))
        if in_flight <= self.broker.held(tier.queue):
            return 0
        suspects = self.database.read(lambda conn: feeding.dispatched_before(conn, tier, age_s))
        held = self.broker.held_ids(tier.queue)
        lost = [message for message in suspects if segment_task_id(message) not in held]
        if not lost:
            return 0
        return self.database.transact(lambda conn: feeding.take_back_lost(conn, lost))

    def _recover_steps(self) -> int:
        age_s = self.settings.redispatch_after_s
        counts = self.database.read(steps.dispatched_counts)
        short = {kind for kind, count in counts.items() if count > self.broker.held(kind)}
        if not short:
            return 0
        suspects = self.database.read(lambda conn: steps.dispatched_before(conn, age_s))
        held = frozenset[str]().union(*(self.broker.held_ids(kind) for kind in short))
        lost = [m for m in suspects if m.kind in short and step_task_id(m) not in held]
        return self.database.transact(lambda conn: steps.take_back_lost(conn, lost)) if lost else 0

    def _window(self, conn: Connection, pool: Pool) -> int:
        return window(
            pool.tiers,
            nodes.fleets(conn),
            factor=self.settings.window_factor,
            padded_factor=self.settings.window_factor_padded,
            settling=self.settings.commit_most,
            least=self.settings.window_min,
        )

    def _send_quietly(self, send: Callable[[], None]) -> None:
        try:
            send()
        except BrokerError as error:
            log.warning("could not publish, the scheduler will send again: %s", error)
