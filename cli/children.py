"""What the supervisor keeps alive: a process of the table, or a server with its own start.

A child knows how to start, how it ended and how to be stopped; when to do so is the supervisor's
business. Children are started from the supervisor's main thread, whose death ends them.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from cli.processes import Process, Stage
from cli.servers.spawn import spawn


class Child(Protocol):
    """One thing kept alive."""

    @property
    def name(self) -> str:
        """What people and logs call it."""
        ...

    @property
    def stage(self) -> Stage:
        """When it is stopped."""
        ...

    @property
    def log(self) -> Path:
        """Where its output goes."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id; None before the first start."""
        ...

    def start(self) -> None:
        """Start it, also again after it has died."""
        ...

    def ended(self) -> str | None:
        """Say how it ended; None while it lives or was never started."""
        ...

    def ask_to_stop(self) -> None:
        """Ask it to finish what it holds and leave. Safe when it is gone."""
        ...

    def kill(self) -> None:
        """End it at once, with what it started. Safe when it is gone."""
        ...


class ProcessChild:
    """A process of the table, with the farm's settings of that moment in its environment."""

    def __init__(
        self, process: Process, *, logs: Path, environment: Callable[[], Mapping[str, str]]
    ) -> None:
        self.name = process.name
        self.stage = process.stage
        self.log = logs / f"{process.name}.log"
        self._argv = process.argv
        self._environment = environment
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id; None before the first start."""
        return self._popen.pid if self._popen else None

    def start(self) -> None:
        """Start it, also again after it has died."""
        self._popen = spawn(self._argv, log_path=self.log, env=self._environment())

    def ended(self) -> str | None:
        """Say how it ended; None while it lives or was never started."""
        return describe_end(self._popen)

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        if self._popen and self._popen.poll() is None:
            self._popen.terminate()

    def kill(self) -> None:
        """Send SIGKILL to the child's whole process group."""
        kill_group(self._popen)


class Server(Protocol):
    """What the servers of `cli.servers` have in common."""

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The running process; None before the first start."""
        ...

    def start(self) -> object:
        """Start it and wait until it answers. SetupError when it does not."""
        ...


class ServerChild:
    """A server beneath the farm: Valkey, SeaweedFS. It is ready when `start` returns."""

    stage = Stage.STORE

    def __init__(self, name: str, server: Server, *, log: Path) -> None:
        self.name = name
        self.log = log
        self._server = server

    @property
    def pid(self) -> int | None:
        """Process id; None before the first start."""
        return self._server.process.pid if self._server.process else None

    def start(self) -> None:
        """Start it, also again after it has died, and wait until it answers."""
        self._server.start()

    def ended(self) -> str | None:
        """Say how it ended; None while it lives or was never started."""
        return describe_end(self._server.process)

    def ask_to_stop(self) -> None:
        """Send SIGTERM: it writes down what it holds and leaves."""
        if self._server.process and self._server.process.poll() is None:
            self._server.process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        kill_group(self._server.process)


def describe_end(popen: subprocess.Popen[bytes] | None) -> str | None:
    """Put a process's end in words; None while it lives or when there is none."""
    if popen is None or (status := popen.poll()) is None:
        return None
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def kill_group(popen: subprocess.Popen[bytes] | None) -> None:
    """Kill a process and what it started, when it leads a group of its own."""
    if popen is None or popen.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(popen.pid) == popen.pid:
            os.killpg(popen.pid, signal.SIGKILL)
    popen.kill()
