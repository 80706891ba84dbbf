"""Sends new steps to their queue soon after their jobs are recorded, beside the requests.

A client has its answer whether Redis is quick, slow or away. What is not sent here, because the
process dies or too much waits, the scheduler finds in the ledger and sends a second later.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence

from shared.errors import VoxfarmError

log = logging.getLogger(__name__)
MOST_WAITING = 1_000
STOP_S = 1.0


class Waker:
    """One thread that sends what was asked for since its last sending, all at once."""

    def __init__(self, send: Callable[[Sequence[str]], object]) -> None:
        self._send = send
        self._waiting: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        # A daemon: a Redis that swallows connections must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="waker", daemon=True)

    def start(self) -> None:
        """Begin sending."""
        self._thread.start()

    def wake(self, step_id: str) -> None:
        """Have a step sent; returns at once."""
        try:
            self._waiting.put_nowait(step_id)
        except queue.Full:
            log.info("left to the scheduler: %d steps wait already", MOST_WAITING)

    def stop(self, within_s: float = STOP_S) -> None:
        """Send what waits, if that goes quickly, and end."""
        try:
            self._waiting.put(None, timeout=within_s)
        except queue.Full:
            return
        self._thread.join(within_s)

    def _run(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while not self._waiting.empty():  # nobody else takes from it
                batch.append(self._waiting.get())
            step_ids = [step_id for step_id in batch if step_id is not None]
            try:
                if step_ids:
                    self._send(step_ids)
            except VoxfarmError as error:
                log.warning("left to the scheduler: %s", error)
            except Exception:
                log.exception("left to the scheduler")
            if None in batch:
                return
