"""Starting a program that dies with us. Knows nothing of which program it is.

On Linux the child is sent SIGKILL when the **thread** that started it ends (prctl(2)), so call
`spawn` from a thread that lives as long as the process. Elsewhere a program that does not watch
its parent by itself outlives it.
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
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program, named by its path, whose output goes to the end of a log file.

    It leads a process group of its own, so that Ctrl-C in a terminal reaches it through us only.
    Raises OSError; a program that is missing shows as a child that ends at once.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    # -P: a folder `shared` where we happen to stand is not our package.
    stub = [sys.executable, "-P", "-c", _STUB, str(os.getpid())]
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [*stub, *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=None if env is None else dict(env),
            cwd=cwd,
            pass_fds=pass_fds,
            process_group=0,
        )
