"""Read by every Python process of a storm's farm at its start: its wall clock becomes wrong.

By another amount in each process, up to half an hour either way. Leases, retries and dispatches
must go by the database's clock, and what one process measures alone by its monotonic one.
"""

import os
import random
import time

_MOST_S = 1_800.0


def _set_wrong() -> None:
    seed = os.environ.get("VOXFARM_WRONG_CLOCKS")
    if seed is None:
        return
    by_s = random.Random(f"{seed}.{os.getpid()}").uniform(-_MOST_S, _MOST_S)
    right_s, right_ns = time.time, time.time_ns
    time.time = lambda: right_s() + by_s
    time.time_ns = lambda: right_ns() + int(by_s * 1e9)


_set_wrong()
