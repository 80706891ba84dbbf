"""kombu's Redis transport, whose channels keep one client for their commands.

kombu makes a client object for every command that is sent and every message that is acknowledged:
a tenth of a busy consumer's Python time. A client is only a door to the channel's connection pool.
"""

from typing import Any

from kombu.transport import redis as kombu_redis


class Channel(kombu_redis.Channel):  # type: ignore[misc]
    """A channel that makes a new client only when its pool has changed."""

    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002
        if asynchronous:
            return super()._create_client(asynchronous=True)
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()
        return self._kept


class Transport(kombu_redis.Transport):  # type: ignore[misc]
    """Redis, by our channels."""

    Channel = Channel
