"""Sends new steps to their queue soon after their jobs are recorded, beside the requests.

A client has its answer whether Redis is quick, slow or away. What is not sent here, because the
process dies or Redis is away, the scheduler finds in the ledger and sends a second later.
"""

import logging
import threading
from collections.abc import Callable

from shared.errors import VoxfarmError

log = logging.getLogger(__name__)
STOP_S = 1.0


class Waker:
    """One thread that sends what is ready whenever it was woken since its last sending."""

    def __init__(self, send: Callable[[], object]) -> None:
        self._send = send
        self._woken = threading.Event()
        self._stopping = False
        # A daemon: a Redis that swallows connections must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="waker", daemon=True)

    def start(self) -> None:
        """Begin sending."""
        self._thread.start()

    def wake(self) -> None:
        """Have what is ready sent; returns at once."""
        self._woken.set()

    def stop(self, within_s: float = STOP_S) -> None:
        """Send once more, if that goes quickly, and end."""
        self._stopping = True
        self._woken.set()
        self._thread.join(within_s)

    def _run(self) -> None:
        while True:
            self._woken.wait()
            self._woken.clear()
            try:
                self._send()
            except VoxfarmError as error:
                log.warning("left to the scheduler: %s", error)
            except Exception:
                log.exception("left to the scheduler")
            if self._stopping and not self._woken.is_set():
                return
