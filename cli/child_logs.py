"""Keeps the children's logs small and reads their ends. Knows no process."""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

MAX_LOG_BYTES = 8 * 1024 * 1024
_TAIL_BYTES = 64 * 1024
_FRAME = re.compile(
    r"\s|$|Traceback \(most recent call last\)"
    r"|During handling of the above exception|The above exception was the direct cause"
)


def bound(log: Path, *, max_bytes: int = MAX_LOG_BYTES) -> bool:
    """Move a log that has grown past `max_bytes` to NAME.1 and go on with an empty one.

    The child keeps its descriptor, opened for appending, so the file is copied and emptied; what
    it writes between the two is lost, which a log may.
    """
    try:
        if log.stat().st_size <= max_bytes:
            return False
    except OSError:
        return False
    with suppress(OSError):  # on a full disk the older half is given up, not the farm
        shutil.copyfile(log, log.with_name(log.name + ".1"))
    with suppress(OSError):
        os.truncate(log, 0)
    return True


def length_bytes(log: Path) -> int:
    """How long a log is now: what `last_lines` is told, to leave out what was there before."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def last_lines(log: Path, count: int = 15, *, since_bytes: int = 0) -> str:
    """Return the last lines of a log that say something; empty when there is none.

    Logs are appended to from start to start: nothing before `since_bytes` is told, unless the log
    was emptied since. The frames of Python's traces are left out, so that what went wrong first is
    still in sight.
    """
    try:
        with log.open("rb") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            begin = since_bytes if since_bytes <= size_bytes else 0
            file.seek(max(begin, size_bytes - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if not _FRAME.match(line)]
    return "\n".join(lines[-count:])
