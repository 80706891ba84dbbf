"""The data folder as a meeting place: who runs a farm in it, where it listens, who uses it.

Three files, all 0600. `farm.lock` is locked (flock) by the one supervisor of the folder, so the
kernel itself forgets a farm that was killed. `farm.json` tells clients the address; it counts
only while the lock is held by the same pid. `clients.lock` is the door: every client holds it
shared while it uses the farm, and a farm that was started only for its clients leaves when it
can hold it alone; by that same hold it keeps new clients out until it is gone.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict, ValidationError

from cli.errors import AlreadyRunningError, FarmAwayError
from shared.errors import UsageError

_PROBE_S = 0.02  # a client that looks whether the lock is held holds it for less than this
_DOOR_S = 15.0  # a farm that is leaving is gone after 5 s


class FarmAddress(BaseModel):
    """What `farm.json` says. `embedded`: the farm leaves when no client uses it any more.

    `s3_url` is where the store was at the start; files' own URLs say where it is.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str
    pid: int
    version: str
    started_at: float
    embedded: bool = False
    flower_url: str | None = None
    s3_url: str | None = None


@dataclass(frozen=True, slots=True)
class DataFolder:
    """One farm's folder."""

    path: Path

    @property
    def logs(self) -> Path:
        """Folder of the children's logs."""
        return self.path / "logs"

    @property
    def _lock(self) -> Path:
        return self.path / "farm.lock"

    @property
    def _address(self) -> Path:
        return self.path / "farm.json"

    @property
    def _door(self) -> Path:
        return self.path / "clients.lock"

    def prepare(self) -> None:
        """Make the folder, for this user alone. UsageError when that is impossible."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            with _opened(self._lock):
                pass
        except OSError as error:
            raise UsageError(
                f"the data folder {self.path} cannot be used: {error.strerror or error}; "
                "name another with --data",
                code="bad-data-folder",
            ) from None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the folder's only farm. AlreadyRunningError names the one that is there."""
        with _opened(self._lock) as lock:
            if not _flock(lock, fcntl.LOCK_EX, within_s=25 * _PROBE_S):
                raise self._already_running()
            lock.seek(0)
            lock.truncate()
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            self.withdraw()
            try:
                yield
            finally:
                self.withdraw()

    def publish(self, address: FarmAddress) -> None:
        """Tell clients where the farm listens. Call it while holding the folder."""
        draft = self._address.with_suffix(".new")
        with _opened(draft) as file:
            file.truncate(0)
            file.write(address.model_dump_json() + "\n")
        draft.replace(self._address)
        with self._lock.open("r+", encoding="utf-8") as lock:
            lock.write(f"{address.pid}\n{address.url}\n")

    def withdraw(self) -> None:
        """Tell clients that the farm takes no more work."""
        with suppress(FileNotFoundError):
            self._address.unlink()

    def is_held(self) -> bool:
        """Tell whether a farm lives in this folder, ready or not."""
        try:
            with self._lock.open("r+", encoding="utf-8") as lock:
                return not _flock(lock, fcntl.LOCK_SH, within_s=0)
        except OSError:
            return False

    def running(self) -> FarmAddress | None:
        """Return the address of the folder's farm; None when there is none or it is not ready."""
        try:
            address = FarmAddress.model_validate_json(self._address.read_bytes())
        except (OSError, ValidationError):
            return None
        if self._holder_pid() != address.pid or not self.is_held():
            return None
        return address

    @contextmanager
    def using(self) -> Iterator[None]:
        """Be a client of the folder's farm: one that is for its clients alone stays meanwhile."""
        with _opened(self._door) as door:
            if not _flock(door, fcntl.LOCK_SH, within_s=_DOOR_S):
                raise FarmAwayError(f"the farm in {self.path} is stopping and does not come to end")
            yield

    @contextmanager
    def door(self) -> Iterator[Callable[[], bool]]:
        """For a farm that serves only its clients: a call that tells whether it may leave.

        Once the answer was yes, no client comes in any more.
        """
        with _opened(self._door) as door:
            yield lambda: _flock(door, fcntl.LOCK_EX, within_s=0)

    def _holder_pid(self) -> int | None:
        try:
            return int(self._lock.read_text(encoding="utf-8").split("\n", 1)[0])
        except (OSError, ValueError):
            return None

    def _already_running(self) -> AlreadyRunningError:
        pid = self._holder_pid()
        address = self.running()
        where = f" at {address.url}" if address else ", still starting or stopping,"
        return AlreadyRunningError(
            f"a farm{where} already runs in {self.path} (pid {pid}); "
            "use it, stop it, or name another folder with --data",
            code="already-running",
            pid=pid,
            url=address.url if address else None,
        )


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    """Open for reading and writing, made 0600 when new, never emptied, never inherited."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        yield file


def _flock(file: IO[str], kind: int, *, within_s: float) -> bool:
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(_PROBE_S)
        else:
            return True
