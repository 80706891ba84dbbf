"""The farm's outlook, read at most once a second however many ask."""

import threading
import time
from collections.abc import Callable

from shared.outlook import Outlook

FRESH_S = 1.0


class Outlooks:
    """Remembers the last outlook. Thread-safe: those who come during a reading wait for it."""

    def __init__(
        self, read: Callable[[], Outlook], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._known: Outlook | None = None
        self._known_at = 0.0

    def now(self) -> Outlook:
        """The outlook, at most a second old. Raises LedgerBusyError."""
        with self._lock:
            if self._known is None or self._clock() - self._known_at > FRESH_S:
                self._known = self._read()
                self._known_at = self._clock()
            return self._known
