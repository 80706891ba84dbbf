"""Named places where a test may have this process killed, to prove that nothing is lost there.

Without `VOXFARM_CRASH_AT` in the environment a crash point is one dictionary look-up.
"""

import os
import signal


def crash_point(name: str) -> None:
    """Kill this process (SIGKILL) if `VOXFARM_CRASH_AT` names this point.

    `VOXFARM_CRASH_ONCE`, a path that must not exist yet, limits it to one kill over all processes.
    """
    if os.environ.get("VOXFARM_CRASH_AT") != name:
        return
    once = os.environ.get("VOXFARM_CRASH_ONCE")
    if once is not None:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
