"""Free loopback ports, remembered in a file so that a restart listens where clients expect it."""

import json
import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

LOOPBACK = "127.0.0.1"
_ABOVE = 20_000  # clear of the ports that programs commonly claim, and below the ephemeral ones
_BELOW = 32_000


def is_free(port: int) -> bool:
    """True when the port can be bound on loopback right now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int, *, offset_also: int = 0) -> list[int]:
    """Distinct free ports; with `offset_also`, the port so far above each is free too."""
    chosen: list[int] = []
    with ExitStack() as held:
        while len(chosen) < count:
            port = random.SystemRandom().randrange(_ABOVE, _BELOW)
            wanted = [port, port + offset_also] if offset_also else [port]
            if all(_hold(held, p) for p in wanted):
                chosen.append(port)
    return chosen


def remembered_ports(path: Path, names: Sequence[str], *, offset_also: int = 0) -> dict[str, int]:
    """The ports this folder used before, if all are free, else new ones, written down."""
    try:
        ports = {str(k): int(v) for k, v in json.loads(path.read_text()).items()}
    except (OSError, ValueError):
        ports = {}
    if set(ports) != set(names) or not all(map(is_free, ports.values())):
        ports = dict(zip(names, free_ports(len(names), offset_also=offset_also), strict=True))
        path.write_text(json.dumps(ports))
    return ports


def _hold(held: ExitStack, port: int) -> bool:
    probe = socket.socket()
    try:
        probe.bind((LOOPBACK, port))
    except OSError:
        probe.close()
        return False
    held.callback(probe.close)
    return True
