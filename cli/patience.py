"""How long and how often to try again: pure arithmetic on a clock that is passed in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 2.0


@dataclass(slots=True)
class Patience:
    """Counts failures since the last success and says how long to wait before the next try.

    Delays double from 0.1 s to 2 s and are shortened at random by up to a half, so that clients
    that lost the same farm do not come back in step.
    """

    total_s: float
    clock: Callable[[], float]
    random: Random = field(default_factory=Random)
    _since_s: float | None = None
    _failures: int = 0

    def succeeded(self) -> None:
        """Something worked: the next failure starts a fresh count."""
        self._since_s = None
        self._failures = 0

    def failed(self, *, at_least_s: float = 0.0) -> float | None:
        """Seconds to wait before the next try; None when patience has run out."""
        now_s = self.clock()
        if self._since_s is None:
            self._since_s = now_s
        left_s = self._since_s + self.total_s - now_s
        if left_s <= 0:
            return None
        doubled_s = min(FIRST_DELAY_S * 2.0 ** min(self._failures, 16), LONGEST_DELAY_S)
        self._failures += 1
        delay_s = doubled_s * (1.0 - self.random.random() / 2)
        return min(max(delay_s, at_least_s), left_s)
