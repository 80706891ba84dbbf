"""Ties a process to its parent, so that no child outlives a killed supervisor.

Knows nothing of what the process does. On Linux the kernel sends the signal (PR_SET_PDEATHSIG),
even when the parent was killed with SIGKILL; elsewhere a watchdog thread polls the parent's id.

Two traps of the Linux call, see prctl(2): it is tied to the **thread** that started the child, so
start children from a thread that lives as long as the parent; and it survives execve (which is how
a wrapper can protect a program that knows nothing of it), but not fork.
"""

import ctypes
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
WATCHDOG_PERIOD_S = 0.5


def die_with_parent(
    parent_pid: int | None = None, *, signal_no: signal.Signals = signal.SIGKILL
) -> None:
    """Have this process get `signal_no` when its parent dies; call it first thing in `main`.

    Give `parent_pid`, as the parent passed it on the command line or in the environment, to close
    the race in which the parent died before this call: the process then ends at once. Without it
    only a parent lost during the call itself is noticed.
    """
    expected = os.getppid() if parent_pid is None else parent_pid
    if sys.platform == "linux":
        _ask_kernel(signal_no)
    else:
        threading.Thread(
            target=_watch, args=(expected, signal_no), name="lifeline", daemon=True
        ).start()
    if os.getppid() != expected:
        os.kill(os.getpid(), signal_no)


def _ask_kernel(signal_no: signal.Signals) -> None:
    """Raise OSError if the kernel refuses (a sandbox that filters prctl)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal_no), 0, 0, 0) != 0:
        error_no = ctypes.get_errno()
        raise OSError(error_no, f"prctl(PR_SET_PDEATHSIG): {os.strerror(error_no)}")


def _watch(expected: int, signal_no: signal.Signals) -> None:
    while os.getppid() == expected:
        time.sleep(WATCHDOG_PERIOD_S)
    os.kill(os.getpid(), signal_no)
