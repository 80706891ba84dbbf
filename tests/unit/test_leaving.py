"""A process that leaves quickly searches no garbage at its end, and forgets none of its hooks."""

import subprocess
import sys

STORY = """
import atexit, gc, sys
from shared.leaving import leave_quickly

class Lost:
    def __del__(self):
        print("searched")

gc.disable()
atexit.register(print, "hook")
{leave}
lost = Lost()
lost.itself = lost
del lost
"""


def told(leave: str) -> list[str]:
    command = [sys.executable, "-c", STORY.format(leave=leave)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_last_search_for_garbage_is_spared_and_hooks_run() -> None:
    assert told("leave_quickly()") == ["hook"]
    assert told("") == ["hook", "searched"]  # what Python does by itself
