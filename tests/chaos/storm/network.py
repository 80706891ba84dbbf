"""Half-open TCP: connections that look alive at both ends and carry nothing any more.

By routing rules of this process's own network namespace: packets of the connections that exist at
that moment are dropped, in both directions and without a word; new connections work. No program at
either end can tell it from a silent peer, only the kernel's timers can. (The rules say unreachable,
not blackhole: the latter would end connections with an error that no network gives.)
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.chaos.storm.ground import Ground

_PREFERENCE = "50"
_RESERVED_PORTS = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")  # of this namespace


def prepare_network() -> None:
    """Bring loopback up, and make room for rules above the local table's. Needs a namespace."""
    for command in (
        "link set lo up",
        "rule add pref 100 lookup local",
        "rule del pref 0 lookup local",
    ):
        _ip(*command.split())


class HalfOpen:
    """All connections to a port die silently, and never come back."""

    def __init__(self, port: int) -> None:
        self._port = port

    def begin(self) -> None:
        ports = self._client_ports()
        _reserve(ports)
        for port in ports:
            for end in ("sport", "dport"):
                rule = ("ipproto", "tcp", end, str(port), "unreachable")
                _ip("rule", "add", "pref", _PREFERENCE, *rule)

    def end(self) -> None:
        """It is over at once, for new connections; the old ones never come back."""

    def _client_ports(self) -> list[int]:
        return [
            found.laddr.port
            for found in psutil.net_connections(kind="tcp")
            if found.status == psutil.CONN_ESTABLISHED
            and found.raddr
            and found.raddr.port == self._port
            and found.pid != os.getpid()
        ]


def postgres_port(ground: Ground) -> int:
    """The port of the ledger's server."""
    assert ground.postgres is not None
    return int(ground.postgres.url.rsplit(":", 1)[1].split("/")[0])


def _reserve(ports: Sequence[int]) -> None:
    """Have no new connection be given a port of the dead ones, whose rules stay."""
    before = _RESERVED_PORTS.read_text().strip()
    _RESERVED_PORTS.write_text(",".join([*filter(None, [before]), *map(str, ports)]))


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)  # noqa: S607
