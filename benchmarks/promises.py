"""Whether the farm keeps its word: ETAs, quotes, a newcomer beside a flood, late bulk at its floor.

Real farms, a simulated device that sleeps (so a busy machine matters little), or `--engine hibari`.

Run: python -m benchmarks.promises --json - [--only eta] [--arm alone] [--long]
"""

import sys
from pathlib import Path

from benchmarks import etas, newcomers
from benchmarks.report import Bar, at_least, at_most, emit, parser
from shared.scheduling.pools import SHARED_POOL
from shared.tiers import Tier

JUDGED_AT = "20%"
ETA_WITHIN, AUDIO_WITHIN = 0.15, 0.10


def measure_etas(
    names: list[str] | None, *, engine: str, nodes: int, traces: Path | None
) -> tuple[dict[str, object], list[Bar]]:
    """Every arm's errors, and the bars of those that are judged."""
    figures, bars = dict[str, object](), list[Bar]()
    for arm in etas.ARMS:
        if names and arm.name not in names:
            continue
        found = etas.measure(arm, engine=engine, nodes=nodes, traces=traces)
        figures[arm.name] = found
        print(arm.name, found, file=sys.stderr, flush=True)
        if not arm.judged:
            continue
        errors = found["eta_error_at"]
        assert isinstance(errors, dict)
        error = errors[JUDGED_AT]
        off = float("inf") if error is None else abs(error)
        bars.append(at_most(f"eta_{arm.name}", off, ETA_WITHIN))
        audio_off = abs(float(str(found["quoted_audio_error"])))
        bars.append(at_most(f"quoted_audio_{arm.name}", audio_off, AUDIO_WITHIN))
    return figures, bars


def measure_floods(tiers: list[Tier], *, engine: str) -> tuple[dict[str, object], list[Bar]]:
    """A newcomer's times beside another tenant's flood, by tier, and their bars."""
    figures, bars = dict[str, object](), list[Bar]()
    for tier in tiers:
        found = newcomers.flood(tier, engine=engine)
        figures[tier.value] = found
        print(tier.value, found, file=sys.stderr, flush=True)
        for name, times in found.items():
            if isinstance(times, dict):
                bars.append(at_most(f"newcomer_{tier.value}_{name}", times["of_limit"], 1.0))
    return figures, bars


def main() -> None:
    """Measure and report."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--only", choices=["eta", "flood", "late_bulk"], action="append")
    options.add_argument("--arm", action="append", help="an arm of the ETAs; may be given again")
    options.add_argument("--tier", type=Tier, action="append", help="of the floods")
    options.add_argument("--engine", choices=["simulated", "hibari"], default="simulated")
    options.add_argument("--nodes", type=int, default=1)
    options.add_argument("--traces", type=Path, help="folder to keep what was recorded")
    options.add_argument("--long", action="store_true", help="ten minutes of rush flood, not two")
    args = options.parse_args()
    figures, bars = dict[str, object](), list[Bar]()

    def wanted(part: str) -> bool:
        return not args.only or part in args.only

    if wanted("eta"):
        figures["eta"], found = measure_etas(
            args.arm, engine=args.engine, nodes=args.nodes, traces=args.traces
        )
        bars += found
    if wanted("flood"):
        figures["flood"], found = measure_floods(args.tier or [*Tier], engine=args.engine)
        bars += found
    if wanted("late_bulk"):
        late = newcomers.late_bulk(10.0 if args.long else 2.0, engine=args.engine)
        figures["late_bulk"] = late
        share = float(str(late["bulk_share"]))
        bars.append(at_least("late_bulk_share", share, SHARED_POOL.late_bulk_share))
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
