"""Connections that lead only to vetted addresses, and end at a deadline.

This is httpcore's own seam for networks: it asks for a host, the name is looked up here, and the
address that was looked at is the one that is connected to. Host header, SNI and the certificate's
check keep the name. There is no second look-up for a rebinding name to answer otherwise.
"""

import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore

from shared.addresses import Address, AddressPolicy
from worker.webhooks.resolving import look_up

MOST_ADDRESSES = 4


class ForbiddenAddressError(Exception):
    """The host has no address that a webhook may lead to. Says not which ones it has."""


class PinnedBackend(httpcore.NetworkBackend):
    """Opens connections to permitted addresses, for one attempt.

    `deadline_s` is on `clock`'s scale. Raises ForbiddenAddressError and LookupFailedError, beside
    httpcore's own errors.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        deadline_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy
        self._deadline_s = deadline_s
        self._clock = clock
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first permitted address that answers."""
        del timeout, local_address, socket_options
        addresses = look_up(host, port, within_s=self._left_s())
        permitted = [address for address in addresses if self._policy.permits(address)]
        if not permitted:
            raise ForbiddenAddressError("its name leads to no public address")
        return self._first_of(permitted[:MOST_ADDRESSES], port)

    def _first_of(self, addresses: list[Address], port: int) -> httpcore.NetworkStream:
        for place, address in enumerate(addresses, 1):
            share_s = self._left_s() / (len(addresses) - place + 1)
            try:
                stream = self._sockets.connect_tcp(str(address), port, timeout=share_s)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if place == len(addresses):
                    raise
            else:
                return _DeadlineStream(stream, self._left_s)
        raise httpcore.ConnectError

    def _left_s(self) -> float:
        left_s = self._deadline_s - self._clock()
        if left_s <= 0:
            raise httpcore.ConnectTimeout
        return left_s


class _DeadlineStream(httpcore.NetworkStream):
    """A connection all of whose operations end at one deadline, however slowly bytes drip in."""

    def __init__(self, stream: httpcore.NetworkStream, left_s: Callable[[], float]) -> None:
        self._stream = stream
        self._left_s = left_s

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there."""
        return self._stream.read(max_bytes, self._within(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write in small steps: who reads slowly cannot outstay the deadline."""
        for start in range(0, len(buffer), 4_096):
            self._stream.write(buffer[start : start + 4_096], self._within(timeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Begin TLS; the certificate is checked against the host's name, not the address."""
        stream = self._stream.start_tls(ssl_context, server_hostname, self._within(timeout))
        return _DeadlineStream(stream, self._left_s)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's own signature
        """What httpcore wants to know of the connection."""
        return self._stream.get_extra_info(info)

    def _within(self, timeout: float | None) -> float:
        left_s = self._left_s()
        return left_s if timeout is None else min(timeout, left_s)
