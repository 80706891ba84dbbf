"""How busy the farm is, looked up no more often than it is worth. Decides about no job."""

import threading
import time
from collections.abc import Callable

from sqlalchemy import Connection

from api.capacity import Load, measured_rate
from shared.ledger import demand
from shared.ledger.clock import read_clock
from shared.ledger.demand import LiveJob

FRESH_S = 1.0
RATE_WITHIN_S = 300.0
MOST_RENDERINGS = 1_000  # of each tier
_COST_FACTOR = 20  # a look that takes long is repeated less often: a twentieth of the time at most


class LoadGauge:
    """One process's view of the farm's load, at most a second old, or 20 times what a look takes.

    Jobs accepted here since are in it. Thread-safe.
    """

    def __init__(
        self,
        read: Callable[[Callable[[Connection], Load]], Load],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._known: Load | None = None
        self._stale_at = float("-inf")

    def now(self) -> Load:
        """The load as far as it is known. Raises LedgerBusyError."""
        with self._lock:
            if self._known is None or self._clock() >= self._stale_at:
                began = self._clock()
                self._known = self._read(_look)
                ended = self._clock()
                self._stale_at = ended + max(FRESH_S, _COST_FACTOR * (ended - began))
            return self._known

    def add(self, job: LiveJob) -> None:
        """Count a job that was accepted just now."""
        with self._lock:
            if self._known is not None:
                known = self._known
                self._known = Load((*known.jobs, job), known.rate, known.now_s)


def _look(conn: Connection) -> Load:
    recent = demand.renderings(conn, within_s=RATE_WITHIN_S, limit=MOST_RENDERINGS)
    return Load(jobs=demand.live_jobs(conn), rate=measured_rate(recent), now_s=read_clock(conn))
