"""When a dead child is started again, and when the farm gives up. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Wait a little longer after each death of late; after `limit` deaths in `window_s` give up."""

    limit: int = 5
    window_s: float = 60.0
    first_s: float = 0.25
    longest_s: float = 5.0

    def delay_s(self, deaths_s: Sequence[float], now_s: float) -> float | None:
        """Seconds from now to the next start, given the times of all deaths; None: give up."""
        recent = sum(1 for death_s in deaths_s if now_s - death_s < self.window_s)
        if recent >= self.limit:
            return None
        return min(self.first_s * 2.0 ** max(recent - 1, 0), self.longest_s)
