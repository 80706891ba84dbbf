"""The report of all storms: figures, bars, and which seeds are still to be run. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.report import Bar, at_least, at_most

Run = Mapping[str, Any]
TIMES = ("again_s", "whole_s")
NEVER_S = 1e6  # JSON has no infinity


def summary(runs: Sequence[Run], *, lease_s: float, wanted: Mapping[str, int]) -> dict[str, Any]:
    """Figures over all runs. `wanted`: seeds by database."""
    return {
        "lease_s": lease_s,
        "runs": list(runs),
        "not_run": {
            database: sorted(set(range(seeds)) - _seeds(runs, database))
            for database, seeds in wanted.items()
        },
        **{f"{what}_by_fault": _by_fault(runs, what) for what in TIMES},
    }


def table(summary: Mapping[str, Any]) -> str:
    """Recovery by fault, for people: seconds until it works again, and until nothing is forgotten.

    Faults that fell together share their times.
    """
    width = max((len(fault) for fault in summary["again_s_by_fault"]), default=0) + 2
    columns = [("again p50", "median"), ("p95", "p95"), ("worst", "worst")]
    heads = [name for name, _ in columns] + [name.replace("again", "whole") for name, _ in columns]
    lines = [f"{'fault':<{width}}{'times':>6}" + "".join(f"{head:>11}" for head in heads)]
    lines.append("-" * len(lines[0]))
    for fault, first in summary["again_s_by_fault"].items():
        figures = [
            _shown(summary[f"{what}_by_fault"][fault][field])
            for what in TIMES
            for _, field in columns
        ]
        lines.append(f"{fault:<{width}}{first['times']:>6}" + "".join(f"{f:>11}" for f in figures))
    return "\n".join(lines)


def _by_fault(runs: Sequence[Run], what: str) -> dict[str, dict[str, float]]:
    """One of the two times of all recoveries, in seconds, by the faults that fell before it."""
    by_fault: dict[str, list[float]] = defaultdict(list)
    for recovery in _recoveries(runs):
        for fault in recovery["faults"]:
            by_fault[fault].append(_or_never(recovery[what]))
    return {
        fault: {
            "times": len(times),
            "median": _median(times),
            "p95": _p95(times),
            "worst": round(max(times), 2),
        }
        for fault, times in sorted(by_fault.items())
    }


def _shown(seconds: float) -> str:
    return "never" if seconds >= NEVER_S else f"{seconds:.1f}"


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
