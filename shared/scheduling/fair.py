"""Fair sharing between owners by start-time fair queueing. Knows no deadline rule and no tier.

Each owner has a turn, the point on the group's clock from which it may be served. The lowest turn
goes first, and what its owner is served is added to it. The clock stands at the lowest turn of
those that wait, and nobody's turn counts as lower: who was away earns nothing by it.

Source: P. Goyal, H. Vin and H. Cheng, "Start-time Fair Queueing", ACM SIGCOMM 1996.
"""

from heapq import heappop, heappush
from math import inf

Place = tuple[float, str]  # deadline, then job id
_ABSENT: tuple[float, Place] = (inf, (inf, ""))


class FairQueue:
    """Owners that wait, each with its turn and its place among those of an equal turn."""

    def __init__(self, clock_s: float, *, rest_turn_s: float = inf) -> None:
        """No owner that was left out has a lower turn than `rest_turn_s`."""
        self.clock_s = clock_s
        self.rest_turn_s = rest_turn_s
        self._waiting: dict[str, tuple[float, Place]] = {}  # key -> (turn_s, place)
        # Both heaps may hold entries that are out of date: they are dropped when they surface.
        self._reached: list[tuple[Place, str]] = []
        self._ahead: list[tuple[float, str]] = []  # (turn_s, key)

    def put(self, key: str, turn_s: float, place: Place) -> None:
        """Add an owner, or change what is known of it."""
        self._waiting[key] = (turn_s, place)
        if turn_s <= self.clock_s:
            heappush(self._reached, (place, key))
        else:
            heappush(self._ahead, (turn_s, key))

    def leave_out(self, turn_s: float) -> None:
        """Somebody of at least this turn waits who cannot be put in."""
        self.rest_turn_s = min(self.rest_turn_s, turn_s)

    def remove(self, key: str) -> None:
        """Forget an owner that has nothing waiting any more."""
        self._waiting.pop(key, None)

    def after(self, turn_s: float, price_s: float, forgiven_beyond_s: float) -> float:
        """The turn of an owner that is now served for `price_s`; debts have a limit."""
        most_s = self.clock_s + max(price_s, forgiven_beyond_s)
        return min(max(turn_s, self.clock_s) + price_s, most_s)

    def first(self) -> str | None:
        """Whose turn it is; None when nobody waits, or when it may be one who was left out."""
        while True:
            while self._reached:
                place, key = self._reached[0]
                turn_s, current = self._waiting.get(key, _ABSENT)
                if turn_s <= self.clock_s and current == place:
                    return key
                heappop(self._reached)
            if not self._advance():
                return None

    def _advance(self) -> bool:
        """Move the clock on to the lowest turn that waits; False when that cannot be seen."""
        ahead = self._ahead
        while ahead and self._is_old(ahead[0]):
            heappop(ahead)
        if not ahead or ahead[0][0] > max(self.clock_s, self.rest_turn_s):
            return False
        self.clock_s = max(self.clock_s, ahead[0][0])
        while ahead and ahead[0][0] <= self.clock_s:
            entry = heappop(ahead)
            if not self._is_old(entry):
                heappush(self._reached, (self._waiting[entry[1]][1], entry[1]))
        return True

    def _is_old(self, entry: tuple[float, str]) -> bool:
        turn_s, key = entry
        return key not in self._waiting or self._waiting[key][0] != turn_s
