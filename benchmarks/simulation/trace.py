"""Expands a committed trace into jobs, for a size of farm, a load and a seed. Knows no policy.

A trace is a JSON file: a profile of the hour (stretches of relative intensity) and streams of
jobs, each with its tier, its share of the load, its tenants (by Zipf, more on larger farms) and
its jobs' lengths in sentences (log-normal: median, sigma, most). A stream's jobs arrive by the
profile, or partly in `spikes`, or `at_once`; or they are a `backlog`: there from the start, behind
their pace, and due at some point within the given part of the hour.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, log
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulation.device import CAPACITY_XRT, SENTENCE_AUDIO_S
from benchmarks.simulation.work import SimJob
from shared.deadlines import job_due_at, segment_due_at
from shared.scheduling.offer import WaitingSegment
from shared.settings import DEFAULT_TIERS
from shared.tiers import Tier

FOLDER = Path(__file__).parent.parent / "traces"
CHARS_PER_AUDIO_S = 15.0
CHARS_SIGMA = 0.45  # of a log-normal: most sentences have 40 to 180 characters
SHORTEST_CHARS, LONGEST_CHARS = 8, 400


@dataclass(frozen=True, slots=True)
class Size:
    """How large the farm is, how busy, and for how long."""

    gpus: int
    load: float
    duration_s: float
    seed: int

    @property
    def audio_s(self) -> float:
        """The audio that arrives in all."""
        return self.load * self.gpus * CAPACITY_XRT * self.duration_s


def trace_names() -> list[str]:
    """Every committed trace."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def expand(name: str, size: Size) -> list[SimJob]:
    """The jobs of a trace, in order of arrival; equal arguments give equal jobs."""
    spec = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rng = np.random.default_rng([size.seed, size.gpus, round(size.load * 1000)])
    jobs = [
        job
        for number, stream in enumerate(spec["streams"])
        for job in _stream(stream, number, spec["profile"], size, rng)
    ]
    jobs.sort(key=lambda job: (job.arrives_s, job.id))
    for number, job in enumerate(jobs):
        job.id = f"{number:08d}"  # ids sort by age, as real ones do
    return jobs


def make_job(
    job_id: str,
    tenant: str,
    tier: Tier,
    chars: Sequence[int],
    *,
    arrives_s: float,
    created_s: float | None = None,
    rendered: int = 0,
) -> SimJob:
    """A job with its real deadlines, of which so many sentences are rendered already."""
    target = DEFAULT_TIERS[tier]
    born_s = arrives_s if created_s is None else created_s
    due_s = job_due_at(born_s, sum(chars), target)
    total, before, segments = sum(chars), 0, []
    for index, length in enumerate(chars):
        if index >= rendered:
            at_s = segment_due_at(born_s, due_s, index, before / total, target)
            segments.append(WaitingSegment(index, at_s, length / CHARS_PER_AUDIO_S))
        before += length
    first_due_s = inf if rendered else born_s + target.first_audio_s
    return SimJob(
        job_id, tenant, tier, arrives_s, due_s, first_due_s, segments, list(chars[rendered:])
    )


def _stream(
    stream: dict[str, Any],
    number: int,
    profile: Sequence[Sequence[float]],
    size: Size,
    rng: np.random.Generator,
) -> Iterator[SimJob]:
    tier = Tier(stream["tier"])
    many = stream["tenants"] > 1
    tenants = ceil(stream["tenants"] * size.gpus**0.5) if many else 1
    popularity = 1.0 / np.arange(1, tenants + 1)
    popularity /= popularity.sum()
    arrivals = _Arrivals(stream, profile, size.duration_s, rng)
    left_s, count = size.audio_s * stream["share"], 0
    while left_s > 0:
        chars = _lengths(*stream["sentences"], rng=rng)
        tenant = f"{tier.value}-{number}-{rng.choice(tenants, p=popularity)}"
        job_id = f"{number}-{count:07d}"
        if "backlog" in stream:
            low, high = stream["backlog"]
            due_s = size.duration_s * rng.uniform(low, high)
            target_s = job_due_at(0.0, sum(chars), DEFAULT_TIERS[tier])
            # On pace, as much would be left as there is time left; it may be twice as much.
            undone = min(1.0, due_s / target_s * rng.uniform(1.0, 2.0))
            rendered = int((1 - undone) * len(chars))
            job = make_job(
                job_id,
                tenant,
                tier,
                chars,
                arrives_s=0.0,
                created_s=due_s - target_s,
                rendered=rendered,
            )
            job.first_due_s = inf
        else:
            job = make_job(job_id, tenant, tier, chars, arrives_s=arrivals.draw())
        job.flood = stream.get("at_once", False)
        yield job
        count += 1
        left_s -= sum(segment.audio_s for segment in job.segments)


def _lengths(median: float, sigma: float, most: int, *, rng: np.random.Generator) -> list[int]:
    count = int(np.clip(rng.lognormal(log(median), sigma), 1, most))
    mean_chars = SENTENCE_AUDIO_S * CHARS_PER_AUDIO_S
    chars = rng.lognormal(log(mean_chars) - CHARS_SIGMA**2 / 2, CHARS_SIGMA, count)
    return [int(c) for c in np.clip(chars, SHORTEST_CHARS, LONGEST_CHARS)]


class _Arrivals:
    """When the jobs of a stream come, in seconds."""

    def __init__(
        self,
        stream: dict[str, Any],
        profile: Sequence[Sequence[float]],
        duration_s: float,
        rng: np.random.Generator,
    ) -> None:
        self._rng = rng
        self._duration_s = duration_s
        starts, levels = zip(*profile, strict=True)
        self._edges = np.array([*starts, 1.0])
        areas = np.array([b - a for a, b in pairwise(self._edges)]) * np.array(levels)
        self._cumulated = np.concatenate([[0.0], np.cumsum(areas) / areas.sum()])
        self._at_once = stream.get("at_once", False)
        self._flood_at = rng.uniform(0.2, 0.5)
        self._spikes = stream.get("spikes")
        if self._spikes:
            self._spike_at = rng.uniform(0.05, 0.9, self._spikes["count"])

    def draw(self) -> float:
        """One arrival."""
        rng = self._rng
        if self._at_once:
            at = self._flood_at
        elif self._spikes and rng.random() < self._spikes["part"]:
            at = rng.choice(self._spike_at) + rng.uniform(0, self._spikes["length"])
        else:
            at = np.interp(rng.random(), self._cumulated, self._edges)
        return float(at) * self._duration_s
