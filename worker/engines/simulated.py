"""A simulated device for measuring the farm around an engine: it sleeps and computes nothing.

A static engine: a batch of n takes `base_s + per_item_s * n` seconds, whatever the texts. The audio
is a stretch of one quiet tone, as long as speech would be, so equal utterances sound equal.
"""

import time
from collections.abc import Collection, Sequence

import numpy as np

from shared.voices import EngineInfo, VoiceInfo
from worker.engines.base import Chunk, Samples, Utterance

RATE_HZ = 24_000
MAX_CHARS = 400
CHARS_PER_S = 15
_TONE_HZ = 200


class SimulatedEngine:
    """Holds up to `slots` utterances and finishes all of them in one step."""

    def __init__(self, *, base_s: float, per_item_s: float, slots: int) -> None:
        self.info = EngineInfo(
            name="simulated",
            version="1",
            backend="sleep",
            licence="Apache-2.0",
            sample_rate_hz=RATE_HZ,
            voices=(VoiceInfo(id="tone", language="en", name="Tone", licence="Apache-2.0"),),
            languages=("en", "zh"),
            slots=slots,
            max_chars=MAX_CHARS,
            testing=True,
            chars_per_audio_s=CHARS_PER_S,
        )
        self._base_s = base_s
        self._per_item_s = per_item_s
        self._audio = _tone(MAX_CHARS / CHARS_PER_S)
        self._held: list[Utterance] = []

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Take utterances for the next batch."""
        self._held.extend(utterances)

    def step(self) -> Sequence[Chunk]:
        """Sleep as long as the device would work, then hand out the whole batch."""
        held, self._held = self._held, []
        if held:
            time.sleep(self._base_s + self._per_item_s * len(held))
        return [Chunk(u.id, self._audio[: self._length(u)], final=True) for u in held]

    def drop(self, ids: Collection[str]) -> None:
        """Forget utterances of the batch to come."""
        self._held = [u for u in self._held if u.id not in ids]

    @staticmethod
    def _length(utterance: Utterance) -> int:
        return min(len(utterance.text), MAX_CHARS) * RATE_HZ // CHARS_PER_S


def _tone(length_s: float) -> Samples:
    phase = 2 * np.pi * _TONE_HZ / RATE_HZ * np.arange(int(length_s * RATE_HZ))
    samples: Samples = (0.1 * np.sin(phase)).astype(np.float32)
    return samples


def build(*, base_s: float = 0.05, per_item_s: float = 0.04, slots: int = 8) -> SimulatedEngine:
    """Build a device whose batch of n takes `base_s + per_item_s * n` seconds."""
    return SimulatedEngine(base_s=base_s, per_item_s=per_item_s, slots=slots)
