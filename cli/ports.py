"""Ports of this machine: is one free, and which one could be taken. Keeps none open."""

import ipaddress
import random
import socket

from shared.errors import SetupError

LOOPBACK = "127.0.0.1"
# Both below what kernels hand out for outgoing connections, and apart: what is chosen for an API is
# bound seconds later, when servers beneath this farm or another have chosen theirs.
_OWN = range(20_000, 24_000)
SERVERS = range(24_000, 32_000)
_TRIES = 200


def is_wildcard(host: str) -> bool:
    """Tell whether listening on `host` means listening on every address."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def port_is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True


def free_port(*, preferred: int | None = None, chance: random.Random | None = None) -> int:
    """Return a loopback port that nothing listens on: `preferred` if it can be, else any.

    It is chosen at random from a range that the kernel gives to no outgoing connection, so that a
    child that starts again a minute later still finds it free.
    """
    if preferred is not None and port_is_free(LOOPBACK, preferred):
        return preferred
    chance = chance or random.Random()  # noqa: S311 - spreads farms, guards nothing
    for _ in range(_TRIES):
        port = chance.choice(_OWN)
        if port_is_free(LOOPBACK, port):
            return port
    raise SetupError(f"no free port between {_OWN.start} and {_OWN.stop} on {LOOPBACK}")
