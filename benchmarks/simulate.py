"""Our dispatch and batch policies against others', in simulated time, at sizes no desk holds.

Run: python -m benchmarks.simulate --json -          (minutes; one core)
     python -m benchmarks.simulate --full --json -   (hours: 100 devices for an hour, 1,000 for some
                                                      minutes)
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import mean

from benchmarks.report import Bar, at_least, at_most, emit, parser
from benchmarks.simulation.arms import ARMS, OURS, RIVALS, SHIPPED, Arm
from benchmarks.simulation.device import DEVICE, OTHER_DEVICES, Device
from benchmarks.simulation.fairness import compare
from benchmarks.simulation.farm import Farm
from benchmarks.simulation.measures import BulkMeter, Outcome, average, outcome
from benchmarks.simulation.scenarios import late_bulk_share, newcomer
from benchmarks.simulation.trace import Size, expand, trace_names
from shared.scheduling.pools import SHARED_POOL
from shared.tiers import Tier

SEEDS = 5
JUDGED_LOAD = 0.95
SHARE = "late_bulk_share_in_rush_flood"
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One trace, one size of farm, one load."""

    trace: str
    gpus: int
    load: float
    duration_s: float
    seeds: int = SEEDS


def cells(*, quick: bool, full: bool) -> list[Cell]:
    """What a run covers."""
    if quick:
        return [Cell(trace, 1, JUDGED_LOAD, 300.0, seeds=2) for trace in ("flood", "news")]
    chosen = [
        Cell(trace, 1, load, HOUR_S) for trace in trace_names() for load in (0.7, JUDGED_LOAD, 1.2)
    ]
    if not full:
        return [
            *chosen,
            Cell("news", 10, JUDGED_LOAD, 600.0),
            Cell("news", 100, JUDGED_LOAD, 120.0, seeds=1),
        ]
    return [
        *chosen,
        *(Cell(trace, 10, JUDGED_LOAD, HOUR_S) for trace in trace_names()),
        Cell("news", 100, JUDGED_LOAD, HOUR_S),
        Cell("news", 1000, JUDGED_LOAD, 120.0),
    ]


def simulate(arm: Arm, cell: Cell, seed: int) -> Outcome:
    """One run, to the last sentence."""
    jobs = expand(cell.trace, Size(cell.gpus, cell.load, cell.duration_s, seed))
    farm = Farm(arm.dispatch(), arm.layout(cell.gpus), arm.policy())
    bulk = BulkMeter(farm, cell.duration_s)
    farm.run(jobs)
    return outcome(jobs, farm, bulk, gpus=cell.gpus, hour_s=cell.duration_s)


def run_cells(chosen: Sequence[Cell]) -> dict[Cell, dict[str, list[Outcome]]]:
    """Every arm on every cell and seed; progress goes to standard error."""
    results: dict[Cell, dict[str, list[Outcome]]] = {}
    for cell in chosen:
        began_s = time.monotonic()
        # What the set-up is worth is shown on one device.
        shown = cell.load == JUDGED_LOAD and cell.gpus == 1 and cell.duration_s >= HOUR_S
        arms = {name: arm for name, arm in ARMS.items() if shown or name != SHIPPED}
        results[cell] = {
            name: [simulate(arm, cell, seed) for seed in range(cell.seeds)]
            for name, arm in arms.items()
        }
        kept = {name: round(average(runs).kept, 4) for name, runs in results[cell].items()}
        print(cell, kept, f"{time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return results


def stories(*, quick: bool) -> dict[str, dict[str, object]]:
    """For each arm: a newcomer beside a flood, and late bulk in ten minutes of rush flood."""
    minutes = 1.0 if quick else 10.0
    told: dict[str, dict[str, object]] = {}
    for name, arm in ARMS.items():
        if quick and name == SHIPPED:
            continue
        newcomers: dict[str, object] = {}
        for tier in (Tier.STANDARD,) if quick else tuple(Tier):
            for sentences in (1, 100):
                story = newcomer(arm.dispatch, arm.layout(1), arm.policy(), tier, sentences)
                newcomers[f"{tier}_{sentences}"] = _rounded(
                    {**asdict(story), "of_limit": story.of_limit}
                )
        told[name] = {"newcomer": newcomers, SHARE: round(_share(arm, DEVICE, minutes), 4)}
        if name not in RIVALS:
            told[name] |= {
                f"{SHARE}_on_{device_name}": round(_share(arm, device, minutes), 4)
                for device_name, device in OTHER_DEVICES.items()
            }
    return told


def _share(arm: Arm, device: Device, minutes: float) -> float:
    return late_bulk_share(
        arm.dispatch, arm.layout(1, device), arm.policy(device), seed=0, minutes=minutes
    )


def bulk_of_best_rival(arms: dict[str, list[Outcome]], figure: str) -> float:
    """Our bulk throughput as a part of the best rival's."""
    best = max(getattr(average(arms[rival]), figure) for rival in RIVALS)
    return float(getattr(average(arms[OURS]), figure) / best)


def turns() -> dict[str, object]:
    """How evenly our discipline of turns shares, and the usual alternative: means of the seeds."""
    rounds = [compare(seed) for seed in range(SEEDS)]
    return {
        name: {
            figure: round(mean(getattr(compared[name], figure) for compared in rounds), 1)
            for figure in ("worst_drift_s", "newcomer_waits_s")
        }
        for name in rounds[0]
    }


def losses(results: dict[Cell, dict[str, list[Outcome]]]) -> Iterator[dict[str, object]]:
    """Where a rival is better than we are, by more than one promise in two hundred."""
    for cell, arms in results.items():
        ours = average(arms[OURS])
        for name in RIVALS:
            theirs = average(arms[name])
            for figure in ("kept_rush", "kept_standard", "kept_bulk", "bulk_xrt_in_hour"):
                mine, other = getattr(ours, figure), getattr(theirs, figure)
                if other > mine * 1.005:
                    where = f"{cell.trace} {cell.gpus} GPU {cell.load:.0%}"
                    yield _rounded(
                        {"where": where, "to": name, "figure": figure, "ours": mine, "its": other}
                    )


def judge(
    results: dict[Cell, dict[str, list[Outcome]]], told: dict[str, dict[str, object]]
) -> list[Bar]:
    """The bars: promises and bulk throughput at the judged load, newcomers, late bulk."""
    judged = {cell: arms for cell, arms in results.items() if cell.load == JUDGED_LOAD}
    bars = [bar for rival in RIVALS for bar in _lead(OURS, rival, judged.values())]
    whole = [arms for cell, arms in judged.items() if cell.duration_s >= HOUR_S]
    if whole:
        for figure in ("bulk_xrt", "bulk_xrt_in_hour"):
            least = min(bulk_of_best_rival(arms, figure) for arms in whole)
            bars.append(at_least(f"{figure}_of_best_rival", round(least, 4), 0.99))
    for arm in (OURS, SHIPPED):
        if arm in told:
            bars += _told(arm, told[arm])
    if SHIPPED in told:  # what customers have is judged by what they would have elsewhere
        bars += [bar for rival in RIVALS for bar in _lead(SHIPPED, rival, judged.values())]
    return bars


def _lead(name: str, rival: str, judged: Iterable[dict[str, list[Outcome]]]) -> Iterator[Bar]:
    leads = [average(a[name]).kept - average(a[rival]).kept for a in judged if name in a]
    if leads:
        yield Bar(f"{name}_kept_more_than_{rival}", round(min(leads), 4), 0.0, min(leads) > 0)


def _told(name: str, story: dict[str, object]) -> Iterator[Bar]:
    newcomers = story["newcomer"]
    assert isinstance(newcomers, dict)
    worst = max(newcomer["of_limit"] for newcomer in newcomers.values())
    yield at_most(f"{name}_newcomer_of_limit", worst, 1.0)
    for figure, share in story.items():
        if figure.startswith(SHARE):
            assert isinstance(share, float)
            yield at_least(f"{name}_{figure}", share, SHARED_POOL.late_bulk_share)


def main() -> None:
    """Simulate and report."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="seconds: for tests")
    options.add_argument("--full", action="store_true", help="hours: large farms, all seeds")
    args = options.parse_args()
    began_s = time.process_time()
    results = run_cells(cells(quick=args.quick, full=args.full))
    told = stories(quick=args.quick)
    bars = judge(results, told)
    figures: dict[str, object] = {
        "cells": [
            {
                **_rounded(asdict(cell)),
                "arms": {
                    name: {
                        **_rounded(asdict(average(runs))),
                        "kept_by_seed": [round(run.kept, 4) for run in runs],
                    }
                    for name, runs in arms.items()
                },
            }
            for cell, arms in results.items()
        ],
        "stories": told,
        "turns": turns(),
        "where_we_lose": list(losses(results)),
        "kept_at_judged_load": {
            name: round(
                mean(
                    average(arms[name]).kept
                    for cell, arms in results.items()
                    if cell.load == JUDGED_LOAD
                ),
                4,
            )
            for name in (OURS, *RIVALS)
        },
        "cpu_s": round(time.process_time() - began_s, 1),
    }
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


def _rounded(row: dict[str, object]) -> dict[str, object]:
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}


if __name__ == "__main__":
    main()
