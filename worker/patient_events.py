"""Celery's consumer with two habits of its own. Knows no task.

Task events are sent a few at a time: each flush is a publish of its own and cost a fifth of a
consumer's Python time; Flower shows the same, half a second later.

An acknowledgement that fails ends the connection. Celery only logs it, and then the message counts
as unacknowledged for ever: it holds a place among those that may be fetched, and a worker with as
many places as such messages fetches nothing any more, alive as it looks.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from celery.worker.consumer import Consumer

FLUSH_S = 0.5


class PatientConsumer(Consumer):  # type: ignore[misc]
    """Flushes buffered task events on a timer; a full buffer is still flushed at once."""

    _flush_is_due = False

    def on_send_event_buffered(self) -> None:
        """Called for every buffered event."""
        if self.hub is not None and not self._flush_is_due:
            self._flush_is_due = True
            self.hub.call_later(FLUSH_S, self._flush_later)

    def _flush_later(self) -> None:
        self._flush_is_due = False
        self._flush_events()

    def call_soon_ack(self, p: Callable[..., object], *args: object, **kwargs: object) -> Any:  # noqa: ANN401
        """Acknowledge or reject a message: `p` is its method for that, of those that log errors."""
        return super().call_soon_ack(partial(settle, p), *args, **kwargs)


def settle(act: Callable[..., object], *args: object, **kwargs: object) -> None:
    """Acknowledge or reject a message by its own method that logs errors.

    Raises ConnectionError when that failed on a connection still in use, so that the consumer
    makes a new one; what is left unacknowledged on the old one comes back to the queue.
    """
    act(*args, **kwargs)
    message = act.__self__  # type: ignore[attr-defined]
    if not message.acknowledged and not message.channel.closed:
        raise ConnectionResetError("a message could not be acknowledged")
