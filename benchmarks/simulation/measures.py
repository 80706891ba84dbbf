"""What a simulated run comes to: promises kept, waits, throughput. Knows no policy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from statistics import mean

import numpy as np

from benchmarks.simulation.farm import Farm
from benchmarks.simulation.work import Sent, SimJob
from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of a run; `kept_*` are shares of jobs whose promise was kept.

    A promise is kept when first audio and completion were both in time. `kept` is the mean of the
    three tiers; `kept_by_others` leaves out the tenants that send a flood. Rush waits are from
    arrival to first audio. Bulk throughput is audio seconds per second and device: until the last
    of it was done, and within the trace's own duration.
    """

    kept: float
    kept_rush: float
    kept_standard: float
    kept_bulk: float
    kept_by_others: float
    rush_p50_s: float
    rush_p95_s: float
    rush_p99_s: float
    bulk_xrt: float
    bulk_xrt_in_hour: float
    mean_batch: float


class BulkMeter:
    """Counts bulk audio as it is done."""

    def __init__(self, farm: Farm, hour_s: float) -> None:
        self._hour_s = hour_s
        self.audio_s = self.in_hour_s = self.last_s = 0.0
        farm.on_done = self._count

    def _count(self, sent: Sent, now_s: float) -> None:
        if sent.job.tier is Tier.BULK:
            self.audio_s += sent.segment.audio_s
            self.last_s = now_s
            if now_s <= self._hour_s:
                self.in_hour_s += sent.segment.audio_s


def outcome(
    jobs: Sequence[SimJob], farm: Farm, bulk: BulkMeter, *, gpus: int, hour_s: float
) -> Outcome:
    """Sum a finished run up."""
    kept = {tier: mean(job.kept for job in jobs if job.tier is tier) for tier in Tier}
    others = {
        tier: mean(job.kept for job in jobs if job.tier is tier and not job.flood) for tier in Tier
    }
    waits_s = [job.first_done_s - job.arrives_s for job in jobs if job.tier is Tier.RUSH]
    p50_s, p95_s, p99_s = np.percentile(waits_s, [50, 95, 99])
    return Outcome(
        kept=mean(kept.values()),
        kept_rush=kept[Tier.RUSH],
        kept_standard=kept[Tier.STANDARD],
        kept_bulk=kept[Tier.BULK],
        kept_by_others=mean(others.values()),
        rush_p50_s=float(p50_s),
        rush_p95_s=float(p95_s),
        rush_p99_s=float(p99_s),
        bulk_xrt=bulk.audio_s / bulk.last_s / gpus,
        bulk_xrt_in_hour=bulk.in_hour_s / hour_s / gpus,
        mean_batch=farm.sentences / farm.batches,
    )


def average(outcomes: Iterable[Outcome]) -> Outcome:
    """The mean of each figure over several seeds."""
    rows = list(outcomes)
    return Outcome(*(mean(getattr(row, f.name) for row in rows) for f in fields(Outcome)))
