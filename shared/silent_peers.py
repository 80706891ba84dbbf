"""How soon a TCP connection whose other end has silently gone is given up. Opens none.

A peer that lost its power, or a firewall that forgot a connection, says nothing: left to itself the
kernel waits 15 minutes for an acknowledgement, and two hours before it probes an idle connection.
A worker would hang for as long, and a database session would hold its locks.
"""

import socket

IDLE_S = 5  # without traffic for so long, the peer is probed
PROBE_EVERY_S = 2
PROBES = 3  # unanswered in a row
UNANSWERED_S = 8  # what was sent and is not acknowledged by then


def tcp_options() -> dict[int, int]:
    """Socket options of the level IPPROTO_TCP, as far as this system has them."""
    wanted = {
        "TCP_KEEPIDLE": IDLE_S,
        "TCP_KEEPINTVL": PROBE_EVERY_S,
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": UNANSWERED_S * 1000,
    }
    return {
        int(getattr(socket, name)): value for name, value in wanted.items() if hasattr(socket, name)
    }


def watch_over(connection: socket.socket) -> None:
    """Have the kernel give this connection up when its peer has silently gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in tcp_options().items():
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
