"""The engine contract: what a speech model must offer to be run by the farm.

An engine lives in one host process, is built once and warmed up before the host reports ready.
It knows no SQL, no S3, no Redis and no socket.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from shared.voices import EngineInfo

UtteranceId = str
Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Utterance:
    """What an engine is asked to say. Equal fields (but for id, tier, due_at) give equal audio."""

    id: UtteranceId
    text: str
    voice: str
    language: str
    speed: float
    seed: int
    tier: str = "standard"
    due_at: float = 0.0
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of one utterance's audio: float32 mono in [-1, 1] at the engine's rate.

    `final` closes the utterance; `error` closes it without audio (the utterance's own fault).
    """

    utterance_id: UtteranceId
    samples: Samples
    final: bool
    error: str | None = None


class Engine(Protocol):
    """One loop serves static and autoregressive engines alike: policy, admit, step, emit."""

    info: EngineInfo

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Take utterances into free slots; never more than `info.slots` are held at once."""
        ...

    def step(self) -> Sequence[Chunk]:
        """Advance what is held: a whole batch (static) or one decode step (autoregressive)."""
        ...

    def drop(self, ids: Collection[UtteranceId]) -> None:
        """Forget cancelled utterances; unknown ids are ignored."""
        ...
