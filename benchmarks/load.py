"""The load that all arms of a comparison get, and what is read from their runs. Knows no farm.

Bulk is saturated: more than can be done is there from the start. Rush comes at random, by a seeded
Poisson process. The device takes `BASE_S + PER_ITEM_S * n` seconds for a batch of n.
"""

import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BASE_S, PER_ITEM_S = 0.05, 0.04
MAX_BATCH = 8
FULL_BATCH_S = BASE_S + PER_ITEM_S * MAX_BATCH
RUSH_BATCH = 4  # the default `max_batch` of the rush tier: its own ideal
RUSH_ITEM_S = (BASE_S + PER_ITEM_S * RUSH_BATCH) / RUSH_BATCH


@dataclass(frozen=True, slots=True)
class Load:
    """How long and how hard. `kills`: how often a worker is killed afterwards."""

    seconds: float
    rush_per_s: float
    kills: int
    seed: int = 1

    @property
    def bulk(self) -> int:
        """Bulk sentences that cannot be done in the time (the device's own rate, and more)."""
        return int((self.seconds + 20) * MAX_BATCH / FULL_BATCH_S * 1.1)

    def rush_times_s(self) -> Iterator[float]:
        """When rush sentences come, in seconds from the start."""
        chance, at_s = random.Random(self.seed), 0.0
        while (at_s := at_s + chance.expovariate(self.rush_per_s)) < self.seconds:
            yield at_s


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch that the device ran: when it was over, and what was in it."""

    ended_at: float
    rush: int
    bulk: int


def summary(batches: Sequence[Batch]) -> dict[str, float]:
    """Throughput and fullness from the end of the first batch to that of the last.

    `bulk_share_of_ideal`: the device time that the sentences would take in full batches (rush in
    full batches of its own size) by the time that passed. `mean_batch` leaves out batches with
    rush in them, which are smaller on purpose.
    """
    first, *rest = sorted(batches, key=lambda batch: batch.ended_at)
    wall_s = rest[-1].ended_at - first.ended_at
    rush, bulk = sum(b.rush for b in rest), sum(b.bulk for b in rest)
    ideal_s = bulk * FULL_BATCH_S / MAX_BATCH + rush * RUSH_ITEM_S
    return {
        "seconds": round(wall_s, 1),
        "sentences": rush + bulk,
        "sentences_per_s": round((rush + bulk) / wall_s, 2),
        "bulk_share_of_ideal": round(ideal_s / wall_s, 3),
        "mean_batch": round(statistics.mean(b.bulk for b in rest if not b.rush), 2)
        if any(not b.rush for b in rest)
        else 0.0,
        "mean_batch_all": round(statistics.mean(b.rush + b.bulk for b in rest), 2),
    }


def waits(name: str, waits_s: Sequence[float], *, unit_s: float = FULL_BATCH_S) -> dict[str, float]:
    """p50, p95 and p99 of some waits, in batch times (or in another unit)."""
    if not waits_s:
        return {f"{name}_count": 0}
    ordered = sorted(waits_s)
    ends = {f"p{p}": ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 95, 99)}
    figures = {f"{name}_{p}": round(wait_s / unit_s, 2) for p, wait_s in ends.items()}
    return {**figures, f"{name}_count": len(ordered)}
