"""Fair sharing of one server between owners, by start-time fair queueing. Knows no deadline rule.

Every owner has a turn: the point on the group's clock at which it may be served again. The lowest
turn goes first, and what it is served is added to its turn. The clock stands at the lowest turn of
those that wait, so whoever was away starts there: idleness earns nothing.

Source: P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing" (SIGCOMM 1996).
"""

from heapq import heappop, heappush
from math import inf


class FairQueue:
    """Owners that wait, each with its turn. Ties go to the earliest due, then to the lowest key."""

    def __init__(self, clock_s: float, *, rest_turn_s: float = inf) -> None:
        """`rest_turn_s`: no owner that was left out has a lower turn than this."""
        self.clock_s = clock_s
        self._rest_turn_s = rest_turn_s
        self._waiting: dict[str, tuple[float, float]] = {}  # key -> (turn_s, due_at)
        self._ready: list[tuple[float, str]] = []  # (due_at, key), turn reached
        self._ahead: list[tuple[float, str]] = []  # (turn_s, key), turn to come

    def put(self, key: str, turn_s: float, due_at: float) -> None:
        """Add an owner, or change its turn or due time."""
        self._waiting[key] = (turn_s, due_at)
        if turn_s <= self.clock_s:
            heappush(self._ready, (due_at, key))
        else:
            heappush(self._ahead, (turn_s, key))

    def remove(self, key: str) -> None:
        """Forget an owner that has nothing waiting any more."""
        self._waiting.pop(key, None)

    def first(self) -> str | None:
        """Whose turn it is; None when nobody waits, or when it may be one who was left out."""
        while True:
            while self._ready:
                due_at, key = self._ready[0]
                turn_s, current = self._waiting.get(key, (inf, inf))
                if current == due_at and turn_s <= self.clock_s:
                    return key
                heappop(self._ready)
            if not self._advance():
                return None

    def _advance(self) -> bool:
        """Move the clock to the lowest turn that waits; False when there is none to see."""
        ahead = self._ahead
        while ahead and self._waiting.get(ahead[0][1], (inf,))[0] != ahead[0][0]:
            heappop(ahead)
        if not ahead or ahead[0][0] > max(self.clock_s, self._rest_turn_s):
            return False
        self.clock_s = max(self.clock_s, ahead[0][0])
        while ahead and ahead[0][0] <= self.clock_s:
            turn_s, key = heappop(ahead)
            current = self._waiting.get(key)
            if current is not None and current[0] == turn_s:
                heappush(self._ready, (current[1], key))
        return True
