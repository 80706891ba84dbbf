"""Named places where a test may have this process killed, to prove that nothing is lost there.

Without `VOXFARM_CRASH_FILE` in the environment a crash point is one dictionary look-up.
"""

import os
import signal
from pathlib import Path


def crash_point(name: str, subject: str = "") -> None:
    """Kill this process (SIGKILL) if the file `VOXFARM_CRASH_FILE` holds this point's name.

    The file is removed first, so that of all processes passing here exactly one is killed, once.
    With a second line in it, every process is killed that passes here with a `subject` (what it is
    at work on) that contains this line, and the file stays.
    """
    path = os.environ.get("VOXFARM_CRASH_FILE")
    if path is None:
        return
    try:
        point, _, wanted = Path(path).read_text().partition("\n")
        if point != name or wanted not in subject:
            return
        if not wanted:
            Path(path).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
