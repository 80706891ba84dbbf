"""A farm for the length of one command: `voxfarm up` in a process of its own, with no screen.

It is not this process's child in life and death: it stays while any client holds the folder's
door, so that two renders may share it, and leaves when the last one is gone, even by kill -9.
If it dies meanwhile, `ensure` starts the next one, which goes on with the same jobs.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.child_logs import bound, last_lines, length_bytes
from cli.data_folder import DataFolder, FarmAddress
from cli.exits import Exit
from shared.errors import SetupError, UsageError

START_S = 180.0
_LEAVE_S = 8.0
_SHARED_AFTER_S = 1.5  # an address still published then has other clients
_LOOK_S = 0.05


@dataclass(slots=True)
class EmbeddedFarm:
    """Starts a farm when there is none. Hold `DataFolder.using` before calling `ensure`."""

    folder: DataFolder
    options: Sequence[str]
    clock: Callable[[], float] = time.monotonic
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _log_from_bytes: int = field(default=0, init=False)

    @property
    def started(self) -> bool:
        """Tell whether this object has started a farm."""
        return self._process is not None

    def ensure(self) -> FarmAddress:
        """Return a ready farm's address, starting one if need be.

        SetupError: it will not start. UsageError: it refuses what it was told.
        """
        deadline_s = self.clock() + START_S
        while True:
            address = self.folder.running()
            if address is not None:
                return address
            self._start_if_absent()
            if self.clock() > deadline_s:
                raise self._failure(f"it was not ready after {START_S:.0f} s")
            time.sleep(_LOOK_S)

    def leave(self) -> None:
        """Wait until the farm that was started here is gone, unless others use it.

        Call it after `DataFolder.using` has ended.
        """
        began_s = self.clock()
        while self._process is not None and self._process.poll() is None:
            waited_s = self.clock() - began_s
            if waited_s > _LEAVE_S:
                return
            if waited_s > _SHARED_AFTER_S and self.folder.running() is not None:
                return
            time.sleep(_LOOK_S)

    def _start_if_absent(self) -> None:
        if self._process is not None and (status := self._process.poll()) is not None:
            if status == Exit.USAGE:
                raise UsageError(self._told("the farm refuses to start"), code="farm-refused")
            if status > 0 and status != Exit.ALREADY_RUNNING:
                raise self._failure(f"it ended with exit status {status}")
            self._process = None  # another client was quicker, or it was killed: look again
        if self._process is None and not self.folder.is_held():
            self._process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self.folder.prepare()
        command = [sys.executable, "-P", "-m", "cli", "up", "--data", str(self.folder.path)]
        bound(self._log)
        self._log_from_bytes = length_bytes(self._log)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*command, "--until-unused", *self.options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the client; the farm sees the door
            )

    @property
    def _log(self) -> Path:
        return self.folder.logs / "farm.log"

    def _failure(self, why: str) -> SetupError:
        told = self._told(f"the farm could not be started: {why}")
        return SetupError(f"{told}\nTo see what is missing: voxfarm doctor")

    def _told(self, what: str) -> str:
        """Add what this start wrote; the log goes on from farm to farm."""
        said = last_lines(self._log, since_bytes=self._log_from_bytes)
        return f"{what}. Its log {self._log} ends:\n{said}"
