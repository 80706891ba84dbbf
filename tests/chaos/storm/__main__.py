"""`python -m tests.chaos.storm`: seeded storms over a real farm, one JSON report, resumable.

A seed that is in the report is not run again. As root on Linux the storm moves into a network and
mounts of its own first, where it can cut connections and fill a disk; elsewhere the report says
that the ground did not offer that.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.report import emit, parser
from tests.chaos.storm.ground import APART
from tests.chaos.storm.network import prepare_network
from tests.chaos.storm.report import bars, summary, table
from tests.chaos.storm.run import weather
from tests.chaos.storm.sizes import FULL, whole_storm

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the storms that are missing and show recovery by fault. 0: every bar is met."""
    options = parser(__doc__ or "")
    options.add_argument("--postgresql", type=int, default=10, metavar="SEEDS")
    options.add_argument("--sqlite", type=int, default=3, metavar="SEEDS")
    options.set_defaults(json="storm.json")
    given = options.parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    _move_apart()
    path = Path(given.json)
    wanted = {"postgresql": given.postgresql, "sqlite": given.sqlite}
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    for database, seeds in wanted.items():
        for seed in range(seeds):
            if not any(run["seed"] == seed and run["database"] == database for run in runs):
                log.warning("storm %d on %s", seed, database)
                runs.append(weather(seed, database, FULL, partial(whole_storm, seed)))
                _write(runs, wanted, FULL.segments, path)
    met = _write(runs, wanted, FULL.segments, path)
    sys.stderr.write(table(summary(runs, lease_s=FULL.lease_s, wanted=wanted)) + "\n")
    return 0 if met else 1


def _write(
    runs: Sequence[dict[str, Any]], wanted: dict[str, int], segments: int, path: Path
) -> bool:
    made = bars(runs, lease_s=FULL.lease_s, wanted=wanted, segments=segments)
    emit(summary(runs, lease_s=FULL.lease_s, wanted=wanted), made, str(path))
    return all(bar.ok for bar in made)


def _move_apart() -> None:
    """Become a process with a network and mounts of its own, if that is allowed here."""
    if APART in os.environ:
        prepare_network()
        return
    own = ("unshare", "--mount", "--net", "--")
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "mount"))):
        return
    if subprocess.run([*own, "true"], check=False, capture_output=True).returncode == 0:
        os.environ[APART] = "1"
        again = [sys.executable, "-m", "tests.chaos.storm", *sys.argv[1:]]
        os.execvp(own[0], [*own, *again])  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
