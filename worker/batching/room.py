"""How many utterances fit the device at a time: learnt from where it ran out of memory. Pure.

Half of what was too much is tried next. Memory may have been short for a while only (another
process, long texts), so after many full batches twice as many are tried again, ever more seldom
where that has failed before. Knows no engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

GROWS_AFTER_BATCHES = 32  # full ones; twice as many after each failure at the size to be tried
_MOST_DOUBLINGS = 12  # by then a size is tried once in a hundred thousand batches


def halves(count: int) -> tuple[int, int]:
    """What too many are cut into: the larger half first, which is the most to be tried next."""
    larger = (count + 1) // 2
    return larger, count - larger


@dataclass(frozen=True, slots=True)
class Room:
    """`slots` is the engine's own limit, `at_most` the present one. Raises ValueError.

    `failures` counts how often memory ran out, by how many were on the device. `spoken` counts the
    utterances that were over in full batches since `at_most` last changed, or last proved itself.
    """

    slots: int
    at_most: int
    failures: Mapping[int, int] = field(default_factory=dict)
    spoken: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.at_most <= self.slots:
            raise ValueError("at_most must lie between 1 and slots")

    @classmethod
    def of(cls, slots: int) -> "Room":
        """Nothing has failed yet."""
        return cls(slots, slots)

    def ran_out(self, held: int) -> "Room":
        """After memory ran out with two or more utterances on the device."""
        failures = dict(self.failures)
        failures[held] = min(failures.get(held, 0) + 1, _MOST_DOUBLINGS)
        return replace(
            self, at_most=min(self.at_most, halves(held)[0]), failures=failures, spoken=0
        )

    def went_well(self, held: int, over: int) -> "Room":
        """After a step with so many on the device, of which so many are over now."""
        if held < self.at_most:
            return self  # says nothing about a full one
        spoken, proof = self.spoken + over, self.at_most * GROWS_AFTER_BATCHES
        if spoken < proof:
            return replace(self, spoken=spoken)
        failures = {size: n for size, n in self.failures.items() if size > self.at_most}
        larger = min(2 * self.at_most, self.slots)
        if larger == self.at_most:
            return replace(self, failures=failures, spoken=0)
        failed = max((n for size, n in failures.items() if size <= larger), default=1)
        if spoken < proof * 2 ** (failed - 1):
            return replace(self, failures=failures, spoken=spoken)
        return replace(self, at_most=larger, failures=failures, spoken=0)
