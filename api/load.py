"""How busy the farm is, looked up no more often than it is worth. Decides about no job."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import Connection

from api.capacity import Load
from shared import outlook
from shared.ledger import demand
from shared.ledger.clock import read_clock
from shared.ledger.demand import LiveJob
from shared.settings import Settings

FRESH_S = 1.0
_COST_FACTOR = 20  # a look that takes long is repeated less often: a twentieth of the time at most


class LoadGauge:
    """One process's view of the farm's load, at most a second old, or 20 times what a look takes.

    Jobs accepted here since are in it. Thread-safe.
    """

    def __init__(
        self, read: Callable[[], Load], *, clock: Callable[[], float] = time.monotonic
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
                self._known = self._read_on()
                ended = self._clock()
                self._stale_at = ended + max(FRESH_S, _COST_FACTOR * (ended - began))
            return self._known

    def _read_on(self) -> Load:
        """A new look. While no node is alive the last rate counts: the door does not open wide."""
        found = self._read()
        if found.rate is None and self._known is not None:
            return replace(found, rate=self._known.rate)
        return found

    def add(self, job: LiveJob) -> None:
        """Count a job that was accepted just now."""
        with self._lock:
            if self._known is not None:
                self._known = replace(self._known, jobs=(*self._known.jobs, job))


def look(conn: Connection, settings: Settings) -> Load:
    """The load as the ledger shows it now."""
    rate = outlook.rate(conn, settings)
    return Load(
        jobs=demand.live_jobs(conn),
        rate=None if rate is None else rate.audio_s_per_s,
        now_s=read_clock(conn),
    )
