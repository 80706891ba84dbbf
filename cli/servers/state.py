"""A server's folder between its runs: who may run in it, its ports, its secrets.

All of it is readable by this user alone. Knows no server.
"""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.errors import SetupError

_PATIENCE_S = 3.0  # a killed predecessor needs milliseconds
_LOOK_S = 0.02
_SECRET_BYTES = 24


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """One server's folder."""

    path: Path

    def prepare(self) -> None:
        """Make the folder. SetupError when it cannot be used."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(
                f"the folder {self.path} cannot be used: {error.strerror or error}; "
                "choose another data folder"
            ) from error

    @contextmanager
    def claim(self) -> Iterator[int]:
        """Yield a descriptor of the folder's lock; a process that inherits it holds the folder.

        The lock ends with the last process that has the descriptor, however it dies, so a second
        server cannot open the files of a first one that still lives. Raises SetupError after 3 s.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline_s = time.monotonic() + _PATIENCE_S
            while not _locked(descriptor):
                if time.monotonic() > deadline_s:
                    raise SetupError(f"another server runs in {self.path}: stop it first")
                time.sleep(_LOOK_S)
            yield descriptor
        finally:
            os.close(descriptor)

    def ports(self) -> dict[str, int]:
        """Return the ports of the last run; empty when there was none."""
        return {
            name: port
            for name, port in self._read("ports.json").items()
            if isinstance(port, int) and not isinstance(port, bool) and 0 < port < 1 << 16
        }

    def keep_ports(self, ports: Mapping[str, int]) -> None:
        """Remember the ports for the next run."""
        self.write("ports.json", json.dumps(dict(ports)))

    def secrets(self, names: Sequence[str]) -> dict[str, str]:
        """Return this folder's own secrets (URL-safe words), made at the first call."""
        kept = self._read("secrets.json")
        found = {name: word for name in names if isinstance(word := kept.get(name), str) and word}
        if len(found) == len(names):
            return found
        made = {name: found.get(name) or secrets.token_urlsafe(_SECRET_BYTES) for name in names}
        self.write("secrets.json", json.dumps(made))
        return made

    def write(self, name: str, text: str) -> None:
        """Write a file of the folder (0600), whole or not at all."""
        draft = self.path / f"{name}.new"
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path / name)

    def _read(self, name: str) -> dict[str, object]:
        """Return a JSON object of the folder; empty when it is missing or damaged."""
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
