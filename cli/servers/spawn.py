"""Starting a program that dies with us. Knows nothing of which program it is.

On Linux the child is sent SIGKILL when the **thread** that started it ends (prctl(2)), so call
`spawn` from a thread that lives as long as the process.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Runs in a small Python of its own, which then becomes the program: a preexec_fn would run our own
# forked, multi-threaded process, where anything but a system call may dead-lock.
_STUB = (
    "import os, sys; from shared.lifeline import die_with_parent; "
    "die_with_parent(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
)


def spawn(
    argv: Sequence[str],
    *,
    log_path: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program whose output goes to the end of a log file. Raises OSError."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _STUB, str(os.getpid()), *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=None if env is None else dict(env),
            cwd=cwd,
            process_group=0,
        )
