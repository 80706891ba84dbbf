"""Free loopback ports: new ones, or those of the last time where they still are to be had.

A port that is free now may be taken before its server binds it; whoever starts servers must be
ready to choose again.
"""

import random
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from cli.ports import LOOPBACK, SERVERS, port_is_free

_PATIENCE_S = 0.5
_LOOK_S = 0.02


def free_ports(count: int) -> list[int]:
    """Distinct free ports."""
    return list(_new_ports([str(n) for n in range(count)], {}).values())


def ports_as_before(
    before: Mapping[str, int], names: Sequence[str], *, offsets: Mapping[str, int]
) -> dict[str, int]:
    """The ports of `before` if all names are there and soon all free, else new ones.

    With an offset for a name, the port so far above its port is free too. A predecessor that was
    killed with its parent may still be on its way out, hence the patience.
    """
    if set(before) == set(names):
        wanted = [*before.values(), *(before[name] + offset for name, offset in offsets.items())]
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            if all(port_is_free(LOOPBACK, port) for port in wanted):
                return dict(before)
            time.sleep(_LOOK_S)
    return _new_ports(names, offsets)


def _new_ports(names: Sequence[str], offsets: Mapping[str, int]) -> dict[str, int]:
    chosen: dict[str, int] = {}
    with ExitStack() as held:
        for name in names:
            while name not in chosen:
                port = random.SystemRandom().choice(SERVERS)
                if all(_hold(held, port + offset) for offset in {0, offsets.get(name, 0)}):
                    chosen[name] = port
    return chosen


def _hold(held: ExitStack, port: int) -> bool:
    probe = socket.socket()
    try:
        probe.bind((LOOPBACK, port))
    except OSError:
        probe.close()
        return False
    held.callback(probe.close)
    return True
