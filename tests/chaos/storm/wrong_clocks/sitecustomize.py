"""Read by every Python process of a storm's farm at its start: its wall clock becomes wrong.

By another amount in each process, up to half an hour either way. Leases, retries and dispatches
must go by the database's clock, and what one process measures alone by its monotonic one. SQLite's
clock stays right in all of them, but for what a storm sets it by: that is in a file.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from sqlite3 import dbapi2

_MOST_S = 1_800.0
_DAY_S = 86_400.0
_EPOCH_DAYS = 2_440_587.5  # Julian day of 1970-01-01


def _set_wrong() -> None:
    seed = os.environ.get("VOXFARM_WRONG_CLOCKS")
    if seed is None:
        return
    by_s = random.Random(f"{seed}.{os.getpid()}").uniform(-_MOST_S, _MOST_S)
    right_s, right_ns = time.time, time.time_ns
    time.time = lambda: right_s() + by_s
    time.time_ns = lambda: right_ns() + int(by_s * 1e9)
    clock_file = os.environ.get("VOXFARM_STORM_CLOCK_FILE")
    if clock_file is not None:
        _let_sqlite_be_set(Path(clock_file), right_s)


def _let_sqlite_be_set(clock_file: Path, right_s: Callable[[], float]) -> None:
    connect = dbapi2.connect

    def julianday(asked: str) -> float:
        assert asked == "now"
        return (right_s() + float(clock_file.read_text())) / _DAY_S + _EPOCH_DAYS

    def connected(*given: object, **named: object) -> dbapi2.Connection:
        made = connect(*given, **named)  # type: ignore[call-overload]
        made.create_function("julianday", 1, julianday, deterministic=True)  # once a statement
        return made

    dbapi2.connect = connected


_set_wrong()
