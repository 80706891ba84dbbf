"""Batches, tiers and deadlines: ours beside its rivals, one run, the same simulated device.

A static device (0.37 s for a batch of 8) under a saturated bulk queue and rush sentences at random,
through a real Valkey and real processes: our whole farm; plain Celery with one task a sentence;
celery-batches 0.11 in its own environment with Celery 5.6.3; dynamic batches behind one FIFO queue.
Then an autoregressive device, and mixed lengths. Rivals store nothing and have no ledger: their CPU
is that of broker and task alone, to be held against `broker_and_task_ms`, not against all of ours.

Run: python -m benchmarks.batching --json - [--quick]
"""

import sys
from dataclasses import asdict, replace

from benchmarks import continuous, farm_batching, noop, padding
from benchmarks.load import FULL_BATCH_S, Load
from benchmarks.report import Bar, at_least, at_most, emit, parser
from benchmarks.rivals import arm
from benchmarks.rivals.environment import NotInstallableError, batches_python

FULL = Load(seconds=120, rush_per_s=0.5, kills=3)
QUICK = Load(seconds=15, rush_per_s=0.5, kills=1)
SEGMENTS, QUICK_SEGMENTS = 497, 64
MESSAGES, QUICK_MESSAGES = 5_000, 1_000
AT_LEAST = {"bulk_share_of_ideal": 0.93, "mean_batch": 7.6}
AT_MOST = {"rush_batches_p50": 1.6, "rush_batches_p95": 2.1, "lost_sentences": 0}


def measure_rivals(load: Load) -> dict[str, object]:
    """Each rival's figures; a reason instead where one cannot run here."""
    rivals = {
        "plain_celery": arm.measure(arm.plain(), load),
        "one_fifo_queue": arm.measure(arm.fifo(), load),
    }
    try:
        python = batches_python()
    except NotInstallableError as error:
        return {**rivals, "celery_batches": {"skipped": str(error)}}
    return {**rivals, "celery_batches": arm.measure(arm.celery_batches(python), load)}


def bars_of(figures: dict[str, dict[str, object]]) -> list[Bar]:
    """The bars whose figures are there."""
    made = list[Bar]()
    if ours := figures.get("ours"):
        made += [at_least(name, float(str(ours[name])), bar) for name, bar in AT_LEAST.items()]
        made += [at_most(name, float(str(ours[name])), bar) for name, bar in AT_MOST.items()]
        made.append(at_most("all_in_ms", float(str(ours["all_in_ms"])), 20.0))
    if task := figures.get("broker_and_task"):
        made.append(at_most("broker_and_task_ms", float(str(task["all_ms"])), 3.0))
    if slots := figures.get("autoregressive"):
        for name in ("slot_occupancy", "slot_throughput_of_ideal"):
            made.append(at_least(name, float(str(slots[name])), 0.95))
    if mixed := figures.get("mixed_lengths"):
        made += padding.bars(mixed)
    return made


def main() -> None:
    """Measure and report."""
    options = parser(__doc__)
    options.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    options.add_argument("--seconds", type=float, help="of saturated load, each arm")
    options.add_argument("--rush-per-s", type=float, help="rush sentences a second, at random")
    options.add_argument(
        "--only", choices=["ours", "rivals", "task", "autoregressive", "lengths"], action="append"
    )
    args = options.parse_args()
    load = QUICK if args.quick else FULL
    load = replace(load, seconds=args.seconds or load.seconds)
    load = replace(load, rush_per_s=args.rush_per_s or load.rush_per_s)
    figures = dict[str, dict[str, object]]()

    def wanted(part: str) -> bool:
        return not args.only or part in args.only

    if wanted("ours"):
        figures["ours"] = farm_batching.measure(load)
    if wanted("rivals"):
        figures["rivals"] = measure_rivals(load)
    if wanted("task"):
        parts_ms = noop.measure(QUICK_MESSAGES if args.quick else MESSAGES)
        figures["broker_and_task"] = {**parts_ms, "all_ms": round(sum(parts_ms.values()), 2)}
    if wanted("autoregressive"):
        segments = QUICK_SEGMENTS if args.quick else SEGMENTS
        figures["autoregressive"] = continuous.measure(segments)
    if wanted("lengths"):
        figures["mixed_lengths"] = padding.measure()
    bars = bars_of(figures)
    emit({"load": asdict(load), "batch_s": FULL_BATCH_S, **figures}, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
