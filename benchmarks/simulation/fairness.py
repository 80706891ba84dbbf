"""Start-time fair queueing against deficit round robin, on the same segments.

How far apart do tenants drift, and how long does a newcomer wait? Knows no deadline and no farm.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shared.scheduling.fair import FairQueue

LONGEST_S, QUANTUM_S = 26.0, 26.0  # a quantum below the longest segment would idle whole rounds
TENANTS, SERVED, NEWCOMER_AFTER = 40, 4000, 2000


@dataclass(frozen=True, slots=True)
class Fairness:
    """How even the shares were, in audio seconds.

    `worst_drift_s`: by how much two tenants that wait throughout differed in any interval.
    `newcomer_waits_s`: what others get before a newcomer is first served.
    """

    worst_drift_s: float
    newcomer_waits_s: float


def compare(seed: int) -> dict[str, Fairness]:
    """Both disciplines on the same lengths of segments."""
    return {
        name: _run(discipline, seed)
        for name, discipline in (("start_time", _start_time), ("deficit_round_robin", _deficit))
    }


class _Lengths:
    """Segments of each tenant, drawn as they are looked at; some tenants have longer ones."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._next: dict[int, float] = {}

    def head(self, tenant: int) -> float:
        if tenant not in self._next:
            mean_s = 3.0 + 9.0 * (tenant % 3) / 2
            drawn = float(self._rng.lognormal(np.log(mean_s), 0.45))
            self._next[tenant] = min(max(drawn, 0.5), LONGEST_S)
        return self._next[tenant]

    def take(self, tenant: int) -> float:
        length = self.head(tenant)
        del self._next[tenant]
        return length


def _start_time(lengths: _Lengths) -> Iterator[tuple[int, float]]:
    fair = FairQueue(0.0)
    turns = dict.fromkeys(range(TENANTS), 0.0)
    for tenant in turns:
        fair.put(f"{tenant:03d}", 0.0, (0.0, ""))
    for served in range(SERVED):
        if served == NEWCOMER_AFTER:
            turns[TENANTS] = 0.0
            fair.put(f"{TENANTS:03d}", 0.0, (0.0, ""))
        key = fair.first()
        if key is None:
            raise RuntimeError("everybody waits, yet it is nobody's turn")
        tenant = int(key)
        length = lengths.take(tenant)
        turns[tenant] = fair.after(turns[tenant], length, 0.0)
        fair.put(key, turns[tenant], (0.0, ""))
        yield tenant, length


def _deficit(lengths: _Lengths) -> Iterator[tuple[int, float]]:
    ring, deficits, served = deque(range(TENANTS)), dict.fromkeys(range(TENANTS), 0.0), 0
    while served < SERVED:
        tenant = ring[0]
        deficits[tenant] += QUANTUM_S
        while lengths.head(tenant) <= deficits[tenant]:
            length = lengths.take(tenant)
            deficits[tenant] -= length
            if served == NEWCOMER_AFTER:
                ring.append(TENANTS)
                deficits[TENANTS] = 0.0
            served += 1
            yield tenant, length
        ring.rotate(-1)


def _run(discipline: Callable[[_Lengths], Iterator[tuple[int, float]]], seed: int) -> Fairness:
    had = np.zeros(TENANTS + 1)
    # The drift of a pair in any interval is the range of its difference: its highest less its
    # lowest value so far.
    highest = np.zeros((TENANTS, TENANTS))
    lowest = np.zeros((TENANTS, TENANTS))
    newcomer_waits_s = 0.0
    for number, (tenant, length) in enumerate(discipline(_Lengths(seed))):
        had[tenant] += length
        if number >= NEWCOMER_AFTER and had[TENANTS] == 0:
            newcomer_waits_s += length
        if tenant < TENANTS:
            difference = had[:TENANTS, None] - had[None, :TENANTS]
            np.maximum(highest, difference, out=highest)
            np.minimum(lowest, difference, out=lowest)
    return Fairness(round(float((highest - lowest).max()), 1), round(newcomer_waits_s, 1))
