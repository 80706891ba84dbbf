"""Small stories with one question each: a newcomer in a flood, and late bulk in a rush flood."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from benchmarks.simulation.device import FULL_BATCH_S, SENTENCE_AUDIO_S
from benchmarks.simulation.farm import Dispatch, Farm, Layout
from benchmarks.simulation.trace import CHARS_PER_AUDIO_S, make_job
from benchmarks.simulation.work import Sent, SimJob
from shared.tiers import Tier
from worker.batching.policy import Policy

CHARS = int(SENTENCE_AUDIO_S * CHARS_PER_AUDIO_S)
FLOOD_JOBS, FLOOD_SENTENCES = 1000, 5
# The flood has settled by then; the moments fall into different parts of a batch.
NEWCOMER_ARRIVES_S = (5.0, 5.13, 5.29, 5.41, 5.58, 5.66, 5.87, 5.94)
FLOOD_WATCHED_S = 60.0


@dataclass(frozen=True, slots=True)
class Newcomer:
    """How long a tenant's first job takes, alone and beside another's flood of the same tier.

    Means over several moments of arrival, and the worst of them beside the flood.
    """

    alone_s: float
    in_flood_s: float
    worst_s: float

    @property
    def of_limit(self) -> float:
        """Its time as a part of what is allowed: three times alone, and two batches."""
        return self.in_flood_s / (3 * self.alone_s + 2 * FULL_BATCH_S)


def newcomer(
    dispatch: Callable[[], Dispatch], layout: Layout, policy: Policy, tier: Tier, sentences: int
) -> Newcomer:
    """Tenant A sends a thousand jobs at once; seconds later tenant B sends one."""

    def times_s(others: int) -> list[float]:
        took_s = []
        for arrives_s in NEWCOMER_ARRIVES_S:
            flood = [
                make_job(f"a{n:05d}", "A", tier, [CHARS] * FLOOD_SENTENCES, arrives_s=0.0)
                for n in range(others)
            ]
            mine = make_job("b", "B", tier, [CHARS] * sentences, arrives_s=arrives_s)
            Farm(dispatch(), layout, policy).run([*flood, mine], until_s=FLOOD_WATCHED_S)
            took_s.append(min(mine.last_done_s - arrives_s, FLOOD_WATCHED_S))
        return took_s

    flooded_s = times_s(FLOOD_JOBS)
    return Newcomer(mean(times_s(0)), mean(flooded_s), max(flooded_s))


def late_bulk_share(
    dispatch: Callable[[], Dispatch],
    layout: Layout,
    policy: Policy,
    *,
    seed: int,
    minutes: float = 10.0,
) -> float:
    """Late bulk's share of the audio rendered while rush alone floods the farm at 110 %.

    Bulk is there from the start and past due; standard arrives at a third of what the farm can do.
    """
    rng = np.random.default_rng(seed)
    until_s, done_s = minutes * 60, dict.fromkeys(Tier, 0.0)
    capacity_xrt = layout.device.capacity_xrt * layout.gpus
    jobs = [
        *_poisson(rng, Tier.RUSH, 4, 1.1 * capacity_xrt, until_s),
        *_poisson(rng, Tier.STANDARD, 30, 0.33 * capacity_xrt, until_s),
        *_late(5 * layout.gpus, until_s, capacity_xrt / layout.gpus),
    ]
    jobs.sort(key=lambda job: job.arrives_s)
    farm = Farm(dispatch(), layout, policy)

    def count(sent: Sent, _now_s: float) -> None:
        done_s[sent.job.tier] += sent.segment.audio_s

    farm.on_done = count
    farm.run(jobs, until_s=until_s)
    return done_s[Tier.BULK] / sum(done_s.values())


def _poisson(
    rng: np.random.Generator, tier: Tier, sentences: int, xrt: float, until_s: float
) -> list[SimJob]:
    count = rng.poisson(until_s * xrt / (sentences * SENTENCE_AUDIO_S))
    moments: Sequence[float] = sorted(rng.uniform(0, until_s, count))
    return [
        make_job(f"{tier}{n:07d}", f"{tier}{n % 7}", tier, [CHARS] * sentences, arrives_s=float(at))
        for n, at in enumerate(moments)
    ]


def _late(books: int, until_s: float, device_xrt: float) -> list[SimJob]:
    sentences = int(until_s * device_xrt / SENTENCE_AUDIO_S)  # more than all of them can get
    week_s = 7 * 86_400.0
    return [
        make_job(
            f"late{n:03d}",
            f"late{n % 3}",
            Tier.BULK,
            [CHARS] * sentences,
            arrives_s=0.0,
            created_s=-week_s,
        )
        for n in range(books)
    ]
