"""Named places where a test may have this process killed, to prove that nothing is lost there.

Without `VOXFARM_CRASH_FILE` in the environment a crash point is one dictionary look-up.
"""

import os
import signal
from pathlib import Path


def crash_point(name: str) -> None:
    """Kill this process (SIGKILL) if the file `VOXFARM_CRASH_FILE` holds this point's name.

    The file is removed first, so that of all processes passing here exactly one is killed, once.
    """
    path = os.environ.get("VOXFARM_CRASH_FILE")
    if path is None:
        return
    try:
        if Path(path).read_text() != name:
            return
        Path(path).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
