"""What every benchmark prints: its figures, its bars and the machine. Knows no benchmark."""

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure that has to reach a target. `ok` says whether it did: some bars are upper limits.

    A `value` of None was not measured, which is not `ok`.
    """

    name: str
    value: float | None
    target: float
    ok: bool


def at_most(name: str, value: float, target: float) -> Bar:
    """A bar for a figure that must not exceed its target."""
    return Bar(name, value, target, value <= target)


def at_least(name: str, value: float, target: float) -> Bar:
    """A bar for a figure that must reach its target."""
    return Bar(name, value, target, value >= target)


def parser(description: str) -> argparse.ArgumentParser:
    """The command line that all benchmarks share; a benchmark may add to it."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", default="-", metavar="PATH", help="where to write; - is stdout")
    return made


def machine() -> dict[str, object]:
    """The machine as far as it bears on figures: processor, cores, memory, Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": cores,
        "memory_bytes": memory_bytes,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def emit(figures: dict[str, object], bars: list[Bar], path: str) -> None:
    """Write one JSON object to a file, or to standard output when `path` is "-"."""
    report = {**figures, "machine": machine(), "bars": [asdict(bar) for bar in bars]}
    text = json.dumps(report, ensure_ascii=False, indent=2) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def _cpu_model() -> str:
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
