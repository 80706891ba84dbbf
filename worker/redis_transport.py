"""kombu's Redis transport with less to do for a message. Knows no task and no ledger.

What a consumer spends on the queue is most of what a sentence costs beside its audio. Two habits
made up a third of it: a Redis client was built anew for every command, though all share one pool,
and each message was taken off the unacknowledged ones alone. Here one client lasts as long as its
pool, and acknowledgements leave together, when `QoS.settle` is called.
"""

from contextlib import suppress
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis, virtual


def use_for_redis() -> None:
    """Let this process's connections to Redis go by this transport."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"


class QoS(redis.QoS):  # type: ignore[misc]
    """Acknowledges locally at once, which frees the message's place, and in Redis a little later.

    Whatever is not settled when the connection or the process ends comes back to the queue after
    the visibility timeout, as after any crash; the ledger knows it as stale.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - kombu's own
        super().__init__(*args, **kwargs)
        self._to_settle: list[str] = []

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge; done in Redis by the next `settle`."""
        self._to_settle.append(delivery_tag)
        virtual.QoS.ack(self, delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002
        """Drop a message like one that is done, or put it back at once."""
        if not requeue:
            self.ack(delivery_tag)
            return
        super().reject(delivery_tag, requeue=True)

    def settle(self) -> None:
        """Take what was acknowledged off Redis. Raises what the Redis client does."""
        tags, self._to_settle = self._to_settle, []
        if tags:
            with self.pipe_or_acquire() as pipe:
                pipe.zrem(self.unacked_index_key, *tags).hdel(self.unacked_key, *tags).execute()

    def restore_unacked_once(self, stderr: Any = None) -> None:  # noqa: ANN401 - kombu's own
        """Called when the channel is closed; Redis may be what closed it."""
        with suppress(*self.channel.connection_errors):
            self.settle()
        super().restore_unacked_once(stderr)


class Channel(redis.Channel):  # type: ignore[misc]
    """Keeps its client for commands."""

    QoS = QoS
    _commands: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002
        if asynchronous:  # one for each of the two connections that are waited on
            return super()._create_client(asynchronous=True)
        if self._commands is None or self._commands.connection_pool is not self.pool:
            self._commands = super()._create_client()
        return self._commands


class Transport(redis.Transport):  # type: ignore[misc]
    """Redis, by channels of ours."""

    Channel = Channel
