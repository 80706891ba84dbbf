"""The wire contract: what crosses the queue. Imports nothing of ours but the vocabulary.

Messages carry ids and small numbers, never text or audio. `v` is the message version: a worker
that meets a newer one than it knows leaves the work to the ledger's backstop.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

MESSAGE_VERSION = 1
SYNTH_TASK = "voxfarm.synth"
STEP_TASK = "voxfarm.step"
DELIVERY_TASK = "voxfarm.deliver"
DELIVERY_QUEUE = "deliver"


class Message:
    """What all messages can do: become a message body and be rebuilt from one."""

    __slots__: tuple[str, ...] = ()

    def to_kwargs(self) -> dict[str, object]:
        """As Celery keyword arguments."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_kwargs(cls, kwargs: Mapping[str, object]) -> Self:
        """Rebuild from a message body; unknown keys of newer versions are ignored."""
        return cls(**{k: v for k, v in kwargs.items() if k in cls.__slots__})


@dataclass(frozen=True, slots=True)
class SynthMessage(Message):
    """Ask a node to render one segment. `dispatch_no` makes stale copies recognisable."""

    job_id: str
    index: int
    dispatch_no: int
    chars: int
    due_at: float
    tier: str
    v: int = MESSAGE_VERSION


@dataclass(frozen=True, slots=True)
class StepMessage(Message):
    """Ask a worker to carry out one step of a job."""

    step_id: str
    job_id: str
    kind: str
    dispatch_no: int
    v: int = MESSAGE_VERSION


@dataclass(frozen=True, slots=True)
class DeliveryMessage(Message):
    """Ask a worker to send one event to one webhook, and then whatever else waits for it."""

    delivery_id: str
    webhook_id: str
    dispatch_no: int
    v: int = MESSAGE_VERSION
