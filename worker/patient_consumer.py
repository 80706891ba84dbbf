"""Celery's consumer with two habits of its own. Knows no task.

Task events are sent a few at a time: each flush is a publish of its own and cost a fifth of a
consumer's Python time; Flower shows the same, half a second later.

Messages that are done are taken off Redis a few at a time, too. When that fails, the connection
ends. Celery only logs a failed acknowledgement, and then the message counts as unacknowledged for
ever: it holds a place among those that may be fetched, and a worker with as many places as such
messages fetches nothing any more, alive as it looks.
"""

from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer

FLUSH_S = 0.5
SETTLE_S = 0.05


class PatientConsumer(Consumer):  # type: ignore[misc]
    """Flushes task events and acknowledgements on timers; a full buffer of events at once."""

    _flush_is_due = False
    _settling_is_due = False

    def on_send_event_buffered(self) -> None:
        """Called for every buffered event."""
        if self.hub is not None and not self._flush_is_due:
            self._flush_is_due = True
            self.hub.call_later(FLUSH_S, self._flush_later)

    def _flush_later(self) -> None:
        self._flush_is_due = False
        self._flush_events()

    def call_soon_ack(self, p: Callable[..., object], *args: object, **kwargs: object) -> Any:  # noqa: ANN401
        """Acknowledge or reject a message: `p` is its method for that. From any thread."""
        return super().call_soon_ack(self._acknowledge, p, *args, **kwargs)

    def _acknowledge(self, act: Callable[..., object], *args: object, **kwargs: object) -> None:
        act(*args, **kwargs)
        if not self._settling_is_due:
            self._settling_is_due = True
            self.hub.call_later(SETTLE_S, self._settle)

    def _settle(self) -> None:
        self._settling_is_due = False
        if self.task_consumer is not None:  # between two connections there is none
            self.task_consumer.channel.qos.settle()
