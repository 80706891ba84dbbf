"""Notices a local store that answers and yet refuses every write. Knows no server and no S3.

A store whose disk was full may stay broken when there is room again: SeaweedFS's index takes no
entry until its process is started anew. Whoever looks after the process is told when to do that.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

PATIENCE = 3  # refusals in a row
EVERY_S = 2.0
HOLD_OFF_S = 60.0  # a renewed store that refuses again is not the one to blame
ROOM_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class Refusals:
    """Counts refusals that lack of room does not explain. Pure: the time is passed in."""

    _in_a_row: int = 0
    _quiet_until_s: float = float("-inf")

    def note(self, *, refused: bool, room: bool, now_s: float) -> bool:
        """Take in one try to write; True when the store should be started anew."""
        self._in_a_row = self._in_a_row + 1 if refused and room else 0
        if self._in_a_row < PATIENCE or now_s < self._quiet_until_s:
            return False
        self._in_a_row = 0
        self._quiet_until_s = now_s + HOLD_OFF_S
        return True


@dataclass(slots=True)
class StoreWatch:
    """Tries to write every few seconds, in a thread of its own: a store may take long to answer.

    `refuses` tells whether the store answered a write with an error of its own; `room` whether its
    disk has room. `is_stuck` is for another thread, and true once for each finding.
    """

    refuses: Callable[[], bool]
    room: Callable[[], bool]
    clock: Callable[[], float]
    _refusals: Refusals = field(default_factory=Refusals)
    _stuck: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="store-watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no more; a try under way ends by itself."""
        self._stop.set()

    def is_stuck(self) -> bool:
        """Tell once that the store should be started anew."""
        stuck = self._stuck.is_set()
        self._stuck.clear()
        return stuck

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_S):
            refused = self.refuses()
            if self._refusals.note(refused=refused, room=self.room(), now_s=self.clock()):
                self._stuck.set()
