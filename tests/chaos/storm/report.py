"""The report of all storms: figures, bars, and which seeds are still to be run. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.report import Bar, at_least, at_most

Run = Mapping[str, Any]
NEVER_S = 1e6  # JSON has no infinity


def summary(runs: Sequence[Run], *, lease_s: float, wanted: Mapping[str, int]) -> dict[str, Any]:
    """Figures over all runs. `wanted`: seeds by database."""
    by_fault: dict[str, list[float]] = defaultdict(list)
    for recovery in _recoveries(runs):
        for fault in recovery["faults"]:
            by_fault[fault].append(_or_never(recovery["again_s"]))
    return {
        "lease_s": lease_s,
        "runs": list(runs),
        "not_run": {
            database: sorted(set(range(seeds)) - _seeds(runs, database))
            for database, seeds in wanted.items()
        },
        "again_s_by_fault": {
            fault: {"times": len(times), "median": _median(times), "worst": max(times)}
            for fault, times in sorted(by_fault.items())
        },
    }


def bars(
    runs: Sequence[Run], *, lease_s: float, wanted: Mapping[str, int], segments: int
) -> list[Bar]:
    """The bars: nothing wrong, recovery in time, and the seeds that were asked for."""
    again_s = [_or_never(r["again_s"]) for r in _recoveries(runs)]
    whole_s = [_or_never(r["whole_s"]) for r in _recoveries(runs)]
    return [
        at_most("findings", float(sum(len(run["findings"]) for run in runs)), 0.0),
        at_most("recovery_p95_s", _p95(again_s), lease_s + 5),
        at_most("nothing_forgotten_p95_s", _p95(whole_s), lease_s + 5),
        at_least(
            "segments_of_the_smallest_storm",
            float(min((run["segments"] for run in runs), default=0)),
            float(segments),
        ),
        *(
            at_least(f"seeds_{database}", float(len(_seeds(runs, database))), float(seeds))
            for database, seeds in wanted.items()
        ),
    ]


def _seeds(runs: Sequence[Run], database: str) -> set[int]:
    return {run["seed"] for run in runs if run["database"] == database}


def _recoveries(runs: Sequence[Run]) -> list[Mapping[str, Any]]:
    return [recovery for run in runs for recovery in run["recoveries"]]


def _or_never(seconds: float | None) -> float:
    return NEVER_S if seconds is None else seconds


def _median(times: Sequence[float]) -> float:
    return round(float(np.median(times)), 2)


def _p95(times: Sequence[float]) -> float:
    return round(float(np.percentile(times, 95, method="higher")), 2) if times else 0.0
