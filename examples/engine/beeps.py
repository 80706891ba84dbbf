"""An engine of your own, whole: every word is a beep, in two voices. See docs/engines.md."""

from collections.abc import Collection, Sequence

import numpy as np

from shared.voices import EngineInfo, VoiceInfo
from worker.engines.base import Chunk, Utterance

RATE_HZ = 16_000
PITCHES_HZ = {"low": 220.0, "high": 880.0}


class Beeps:
    """A static engine of four slots: a step finishes all that is held."""

    def __init__(self, beep_s: float) -> None:
        voices = tuple(VoiceInfo(id=v, language="en", licence="CC0-1.0") for v in PITCHES_HZ)
        what = {"name": "beeps", "version": "1", "backend": "numpy", "licence": "CC0-1.0"}
        limits = {"slots": 4, "max_chars": 300, "sample_rate_hz": RATE_HZ}
        self.info = EngineInfo(**what, **limits, voices=voices, languages=("en",))
        self._time_s = np.arange(int(beep_s * RATE_HZ), dtype=np.float32) / RATE_HZ
        self._held: list[Utterance] = []

    def admit(self, utterances: Sequence[Utterance]) -> None:
        self._held += utterances

    def step(self) -> Sequence[Chunk]:
        held, self._held = self._held, []
        return [Chunk(one.id, self._say(one), final=True) for one in held]

    def drop(self, ids: Collection[str]) -> None:
        self._held = [one for one in self._held if one.id not in ids]

    def _say(self, one: Utterance) -> np.ndarray:
        wave = np.sin(2 * np.pi * PITCHES_HZ[one.voice] * self._time_s / one.speed)
        return np.tile(0.3 * np.hanning(wave.size) * wave, len(one.text.split())).astype("f4")


def build(*, beep_s: float = 0.2) -> Beeps:
    return Beeps(beep_s)
