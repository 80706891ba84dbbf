"""Looking up a receiver's addresses, in bounded time. Decides nothing about them."""

import ipaddress
import queue
import socket
import threading

from shared.addresses import Address


class LookupFailedError(Exception):
    """The name could not be looked up, or not in time."""


def look_up(host: str, port: int, *, within_s: float) -> list[Address]:
    """The addresses of a host, in the system's order, each once. Raises LookupFailedError.

    The system's resolver cannot be told when to stop, so it is asked from a thread of its own,
    which is left behind when it takes too long.
    """
    found: queue.Queue[list[Address] | OSError | UnicodeError] = queue.Queue()

    def ask() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            found.put(error)
        else:
            # A scope (fe80::1%eth0) stays with the text, so it is never mistaken for public.
            found.put([ipaddress.ip_address(str(entry[4][0])) for entry in entries])

    threading.Thread(target=ask, name="look-up", daemon=True).start()
    try:
        answer = found.get(timeout=max(0.0, within_s))
    except queue.Empty:
        raise LookupFailedError("its name was not found in time") from None
    if isinstance(answer, Exception):
        raise LookupFailedError("its name was not found") from answer
    return list(dict.fromkeys(answer))
