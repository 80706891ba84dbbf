"""The receiver that the jobs of a storm are told to: a real one, and not a good one.

It takes most events; others it refuses, never answers, or takes without its answer arriving. After
a few bad answers to an event it takes it, so that whatever is not delivered is the farm's fault.
"""

import random
import threading
import time
from collections import Counter
from contextlib import ExitStack
from typing import Self

from cli.ports import LOOPBACK
from cli.servers.ports import free_ports
from tests.receiver import Handler, Received, running_receiver

_MOST_BAD = 3  # answers to one event
_MOODS = ("take", "take late", "fail", "hang up")
_WEIGHTS = (5, 1, 2, 2)
_HOOKS = 3


class Letterbox:
    """What came, and what of it was taken. Thread-safe. Open within `with`."""

    def __init__(self, seed: int, *, sender_waits_s: float) -> None:
        self._dice = random.Random(f"letterbox {seed}")
        self._late_s = sender_waits_s + 1.0
        [self._port] = free_ports(1)
        self._running = ExitStack()
        self._lock = threading.Lock()
        self._received: list[Received] = []
        self._taken: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def open(self) -> None:
        """Accept connections, again on the same port."""
        self._running.enter_context(running_receiver(answer=self._answer, port=self._port))

    def shut(self) -> None:
        """Refuse connections."""
        self._running.close()

    def url(self, number: int) -> str:
        """Where the job of this number is told to: one of a few webhooks."""
        return f"http://{LOOPBACK}:{self._port}/{number % _HOOKS}"

    def received(self) -> list[Received]:
        """All that came, in its order."""
        with self._lock:
            return list(self._received)

    def has_taken(self, event_id: str) -> bool:
        """Whether an event was answered well, be it that nobody heard it."""
        with self._lock:
            return bool(self._taken[event_id])

    def _answer(self, handler: Handler, received: Received) -> None:
        mood = self._mood(received)
        if mood == "take late":
            time.sleep(self._late_s)  # nobody waits for it any more
        if mood == "hang up":
            handler.close_connection = True
        else:
            handler.reply(500 if mood == "fail" else 200)

    def _mood(self, received: Received) -> str:
        with self._lock:
            self._received.append(received)
            [mood] = self._dice.choices(_MOODS, _WEIGHTS)
            if self._bad[received.id] >= _MOST_BAD:
                mood = "take"
            if mood.startswith("take"):
                self._taken[received.id] += 1
            if mood != "take":
                self._bad[received.id] += 1
            return mood
