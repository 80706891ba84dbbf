"""The life of one local server: start until it answers, watch, stop. Knows no particular server.

A server is ready when it answers and when it is our own process that listens on the port: another
program that was quicker to take the port is not mistaken for it.
"""

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from cli.child_logs import last_lines, length_bytes
from cli.servers.ports import ports_as_before
from cli.servers.spawn import spawn
from cli.servers.state import ServerFolder
from shared.errors import SetupError

_TRIES = 4
_POLL_S = 0.02
_GRACE_S = 4.0


@dataclass(frozen=True, slots=True)
class Command:
    """How a server is started in its folder."""

    argv: Sequence[str]
    env: Mapping[str, str] | None = None


class LocalServer(ABC):
    """A server on loopback with all its state, its log NAME.log included, in `folder`.

    Start it from a thread that lives as long as this process (see `spawn`).
    """

    name: str
    port_names: Sequence[str]  # the first is the one that clients use
    port_offsets: Mapping[str, int]  # how far above a port it takes another one by itself
    secret_names: Sequence[str]
    start_timeout_s: float

    def __init__(self, folder: Path) -> None:
        self._state = ServerFolder(folder.absolute())
        self._ports: dict[str, int] = {}
        self._secrets: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self._log_from_bytes = 0

    @property
    def folder(self) -> Path:
        """Where its state lies."""
        return self._state.path

    @property
    def log_path(self) -> Path:
        """Where its output goes."""
        return self.folder / f"{self.name}.log"

    def start(self) -> Self:
        """Start it and wait until it answers; also again after it has died.

        It listens where it did before if those ports are free. Does nothing while it lives. Raises
        SetupError: its binary is missing, its folder is in use, or it ended; the message ends with
        its last words.
        """
        if self.alive():
            return self
        self._state.prepare()
        self._log_from_bytes = length_bytes(self.log_path)
        self._secrets = self._state.secrets(self.secret_names)
        before = self._state.ports()
        for attempt in range(_TRIES):
            self.process = self._spawn(before)
            try:
                ready = self._wait_ready(self.process)
            except BaseException:
                self.stop(grace_s=0)
                raise
            if ready:
                self._state.keep_ports(self._ports)
                return self
            # It ended at once. Had its ports been taken meanwhile, choosing anew helps; but first
            # the same ones again, in case its predecessor was still there.
            before = before if attempt == 0 else {}
        raise self._failure(f"it ended {_TRIES} times while starting")

    def stop(self, *, grace_s: float = _GRACE_S) -> None:
        """Ask it to leave; kill it if it has not left after `grace_s`. Safe when it is gone."""
        if self.process is None:
            return
        if grace_s > 0:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace_s)
        self.process.kill()
        self.process.wait()
        self.clear_up()

    def alive(self) -> bool:
        """True while the process runs."""
        return self.process is not None and self.process.poll() is None

    @abstractmethod
    def configure(self) -> Command:
        """Write its files for these ports and secrets. SetupError: its binary is missing."""

    @abstractmethod
    def answers(self) -> bool:
        """Ask it whether it can serve; False also when nothing is there."""

    @abstractmethod
    def clear_up(self) -> None:
        """Remove what it leaves outside its folder; called while it does not run."""

    def _spawn(self, before: Mapping[str, int]) -> subprocess.Popen[bytes]:
        with self._state.claim() as lock:  # first: then a predecessor's ports are free as well
            self._ports = ports_as_before(before, self.port_names, offsets=self.port_offsets)
            self.clear_up()
            command = self.configure()
            return spawn(
                command.argv,
                log_path=self.log_path,
                env=command.env,
                cwd=self.folder,
                pass_fds=(lock,),
            )

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until it serves; False when it ended. SetupError when it takes too long."""
        deadline_s = time.monotonic() + self.start_timeout_s
        while process.poll() is None:
            if self.answers() and _listens(process.pid, self._ports[self.port_names[0]]):
                return True
            if time.monotonic() > deadline_s:
                raise self._failure(f"it did not answer within {self.start_timeout_s:.0f} s")
            time.sleep(_POLL_S)
        return False

    def _failure(self, why: str) -> SetupError:
        return SetupError(
            f"{self.name} could not be started: {why}. Its log {self.log_path} ends:\n"
            f"{last_lines(self.log_path, since_bytes=self._log_from_bytes)}"
        )


def _listens(pid: int, port: int) -> bool:
    with suppress(psutil.Error):
        return any(
            found.status == psutil.CONN_LISTEN and found.laddr.port == port
            for found in psutil.Process(pid).net_connections(kind="tcp")
        )
    return False
