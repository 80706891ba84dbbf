"""What the engine loop is told: by links through the exchange, and by signals."""

from dataclasses import dataclass

from worker.engines.base import Utterance


@dataclass(frozen=True, slots=True)
class Say:
    """A link asks for an utterance; its id is the link's own."""

    connection: int
    utterance: Utterance
    alone: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """A link no longer wants an utterance."""

    connection: int
    id: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A connection ended; nothing it asked for is wanted."""

    connection: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish what the engine holds, then end."""


Event = Say | Drop | Gone | Stop
