"""A node as consumers and a device make it: what it can do is known, and what it did is shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from shared.scheduling.depth import Fleet, Room, room, threads
from shared.scheduling.forecast import Spoken

AUDIO_S = 5.0


@dataclass(frozen=True)
class Device:
    """A static engine: a batch of n takes `base_s + n * each_s`; storing a segment `store_s`."""

    slots: int
    base_s: float
    each_s: float
    store_s: float
    rush: bool = False

    @property
    def best(self) -> float:
        """Audio seconds a second in full batches."""
        return self.slots * AUDIO_S / (self.base_s + self.slots * self.each_s)

    @property
    def room(self) -> Room:
        return room([Fleet(1, self.slots, pads=False)], settling=8, max_batch=self.slots)

    def speak(self, arrivals: Iterable[float]) -> list[Spoken]:
        """What the ledger knows of sentences that came at these times."""
        free_at = [0.0] * threads(self.slots, rush=self.rush, pads=False, settling=8)
        heapify(free_at)
        waiting = sorted(arrivals, reverse=True)
        taken: list[float] = []  # claimed, and not begun
        ready_at = 0.0
        spoken = list[Spoken]()
        while waiting or taken:
            while (
                waiting
                and free_at
                and (not taken or max(waiting[-1], free_at[0]) <= max(ready_at, taken[0]))
            ):
                taken.append(max(waiting.pop(), heappop(free_at)))
            batch, taken = taken[: self.slots], taken[self.slots :]
            ready_at = max(ready_at, batch[-1]) + self.base_s + len(batch) * self.each_s
            for claimed_at in batch:
                spoken.append(Spoken(claimed_at, ready_at + self.store_s, 75, AUDIO_S))
                heappush(free_at, ready_at + self.store_s)
        return spoken
