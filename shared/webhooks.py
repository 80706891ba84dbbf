"""Webhooks in words: what can be told, where a delivery stands, what an attempt came to. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from shared.jobs import JobState


class EventType(StrEnum):
    """What a webhook may be told. `webhook.test` is only sent when somebody asks for it."""

    COMPLETED = "job.completed"
    PARTIAL = "job.partial"
    FAILED = "job.failed"
    CANCELLED = "job.cancelled"
    PROGRESS = "job.progress"
    TEST = "webhook.test"


END_EVENTS: dict[JobState, EventType] = {
    JobState.COMPLETED: EventType.COMPLETED,
    JobState.PARTIAL: EventType.PARTIAL,
    JobState.FAILED: EventType.FAILED,
    JobState.CANCELLED: EventType.CANCELLED,
}
DEFAULT_EVENTS: tuple[EventType, ...] = tuple(END_EVENTS.values())
SELECTABLE_EVENTS: tuple[EventType, ...] = (*DEFAULT_EVENTS, EventType.PROGRESS)
MAX_URL_CHARS = 2_048


class DeliveryState(StrEnum):
    """Where one event stands on its way to one webhook."""

    PENDING = "pending"
    DISPATCHED = "dispatched"
    LEASED = "leased"
    DELIVERED = "delivered"
    FAILED = "failed"  # every try failed, or the webhook is disabled; a replay starts anew
    DROPPED = "dropped"  # progress that newer news overtook


_LATE = frozenset({DeliveryState.DELIVERED, DeliveryState.FAILED})  # by the newest token
_OVER = frozenset({DeliveryState.PENDING})  # a replay

DELIVERY_TRANSITIONS: dict[DeliveryState, frozenset[DeliveryState]] = {
    DeliveryState.PENDING: frozenset(
        {DeliveryState.DISPATCHED, DeliveryState.LEASED, DeliveryState.DROPPED}
    )
    | _LATE,
    DeliveryState.DISPATCHED: frozenset({DeliveryState.LEASED, DeliveryState.PENDING}) | _LATE,
    DeliveryState.LEASED: frozenset({DeliveryState.LEASED, DeliveryState.PENDING}) | _LATE,
    DeliveryState.DELIVERED: _OVER,
    DeliveryState.FAILED: _OVER,
    DeliveryState.DROPPED: _OVER,
}


class Standing(StrEnum):
    """What is known of a webhook; each standing has delivery slots that the others cannot take."""

    NEW = "new"  # never answered well
    GOOD = "good"  # its last answer was good
    FAILING = "failing"  # its last answer was bad, or there was none


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt came to. `status` None: no answer, and `error` says why.

    `counts` False: nothing was sent and it is no fault of the receiver's.
    """

    status: int | None
    error: str | None
    duration_s: float
    retry_after_s: float | None = None
    counts: bool = True

    @property
    def delivered(self) -> bool:
        """True for 2xx; everything else, redirects too, is a failure."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from an attempt: the delivery's next state, and what its webhook gets.

    A pending delivery waits `delay_s`; nothing is sent to the webhook for `hold_s`.
    """

    state: DeliveryState
    delay_s: float = 0.0
    hold_s: float = 0.0
    disable: bool = False
