"""What a whole embedded farm costs while nobody asks anything of it, and where it listens.

Memory is counted twice: resident (a page that processes share counts for each of them) and
proportional (shared pages are divided among those who share them, so that the sum is true).

Run: python -m benchmarks.idle --json -
"""

import ipaddress
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable

import psutil

from benchmarks.farm_process import Watched, kind_of, running_farm
from benchmarks.report import at_most, emit, parser

SETTLING_S = 15.0  # the last of the start-up's work
WATCHED_S = 30.0


def memory_mb(processes: Iterable[psutil.Process]) -> dict[str, dict[str, float]]:
    """By process kind: how many, resident and proportional memory in MB, summed."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for process in processes:
        memory = process.memory_full_info()
        found[kind_of(process)].update(
            {"processes": 1, "rss_mb": memory.rss / 1e6, "pss_mb": memory.pss / 1e6}
        )
    return {
        kind: {name: round(value, 1) for name, value in sums.items()}
        for kind, sums in sorted(found.items())
    }


def outer_listeners(processes: Iterable[psutil.Process]) -> list[str]:
    """Addresses that any of the processes listens on and that are not loopback."""
    return sorted(
        f"{kind_of(process)} {at.laddr.ip}:{at.laddr.port}"
        for process in processes
        for at in process.net_connections(kind="inet")
        if at.status == psutil.CONN_LISTEN and not ipaddress.ip_address(at.laddr.ip).is_loopback
    )


def measure(engine: str, nodes: int) -> dict[str, object]:
    """A farm that has just become ready, left alone."""
    with running_farm(engine=engine, nodes=nodes) as farm:
        time.sleep(SETTLING_S)
        before, began_s = farm.cpu_s(), time.monotonic()
        time.sleep(WATCHED_S)
        after, took_s = farm.cpu_s(), time.monotonic() - began_s
        processes = _all(farm)
        by_kind = memory_mb(processes)
        return {
            "processes": len(processes),
            "rss_mb": round(sum(sums["rss_mb"] for sums in by_kind.values()), 1),
            "pss_mb": round(sum(sums["pss_mb"] for sums in by_kind.values()), 1),
            "cores_used": round((sum(after.values()) - sum(before.values())) / took_s, 4),
            "memory_by_kind": by_kind,
            "cpu_ms_per_s_by_kind": {
                kind: round(1000 * (after[kind] - before.get(kind, 0.0)) / took_s, 1)
                for kind in sorted(after)
            },
            "outer_listeners": outer_listeners(processes),
        }


def _all(farm: Watched) -> list[psutil.Process]:
    return [farm.process, *farm.process.children(recursive=True)]


def main() -> None:
    """Measure and report."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--engine", default="hibari")
    options.add_argument("--nodes", type=int, default=os.cpu_count() or 1)
    args = options.parse_args()
    figures = measure(args.engine, args.nodes)
    listeners = figures["outer_listeners"]
    assert isinstance(listeners, list)
    bars = [at_most("outer_listeners", len(listeners), 0)]
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
