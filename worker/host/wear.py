"""Decides when a host has served long enough and makes room for a new one. Knows no engine.

Native libraries leak and fragment memory; a host that ends between two batches and is started again
costs its loading time, one that the system kills costs a batch.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

_LOOK_EVERY_S = 1.0
_MB = 1e6


@dataclass(frozen=True, slots=True)
class WearLimits:
    """When a host ends by itself: after so many batches, or grown by so much. 0: never."""

    max_batches: int = 0
    max_growth_mb: float = 0.0

    def __post_init__(self) -> None:
        if self.max_batches < 0:
            raise ValueError("max_batches must be 0 or more")
        if not 0 <= self.max_growth_mb < float("inf"):
            raise ValueError("max_growth_mb must be a number of megabytes, 0 or more")


def resident_bytes() -> int:
    """Memory of this process."""
    return int(psutil.Process().memory_info().rss)


@dataclass(slots=True)
class Wear:
    """Counts what one host has done. Growth is measured from its first batch, warmed up."""

    limits: WearLimits = field(default_factory=WearLimits)
    memory: Callable[[], int] = resident_bytes
    clock: Callable[[], float] = time.monotonic
    _batches: int = 0
    _at_first_bytes: int = 0
    _looked_s: float = float("-inf")

    def count_batch(self) -> None:
        """Note that utterances have been admitted to the device."""
        if self._batches == 0 and self.limits.max_growth_mb:
            self._at_first_bytes = self.memory()
        self._batches += 1

    def worn(self) -> str | None:
        """Why the host should end now, in words; None when it should not."""
        limits = self.limits
        if limits.max_batches and self._batches >= limits.max_batches:
            return f"it has served {self._batches} batches"
        if not limits.max_growth_mb or self._batches == 0:
            return None
        now_s = self.clock()
        if now_s - self._looked_s < _LOOK_EVERY_S:
            return None
        self._looked_s = now_s
        grown_mb = (self.memory() - self._at_first_bytes) / _MB
        if grown_mb > limits.max_growth_mb:
            return f"it has grown by {grown_mb:.0f} MB"
        return None
