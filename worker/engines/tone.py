"""A deterministic engine for tests: its audio names the utterance it was made from.

Each utterance becomes a third of a second of tones that carry `utterance_hash` (see tone_code), so
order, absence and doubling can be read from a delivered file alone. It speaks any text, and one
utterance a step, so a freed slot can be refilled at once. Some texts provoke faults:

    [[crash]]  the process aborts
    [[hang]]   the step never returns
    [[fail]]   the utterance comes back as its own error
    [[raise]]  every step raises while the utterance is held
    [[oom]]    every step raises MemoryError while it is held together with another
    [[sick]]   as [[fail]], while the file exists that the option `sick_file` names
"""

import hashlib
import os
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from shared.voices import EngineInfo, VoiceInfo
from worker.engines.base import Chunk, Utterance
from worker.engines.tone_code import encode

RATE_HZ = 24_000
_VOICES = ("a", "b", "c")


def utterance_hash(text: str, voice: str, speed: float) -> str:
    """12 hexadecimal digits over what is said and how; the seed does not matter."""
    said = f"voxfarm-tone\0{voice}\0{speed:.6g}\0{text}".encode()
    return hashlib.sha256(said).hexdigest()[:12]


class ToneEngine:
    """Holds up to `slots` utterances and finishes one of them a step, after `delay_s`."""

    def __init__(self, *, delay_s: float, slots: int, sick_file: str) -> None:
        self.info = EngineInfo(
            name="tone",
            version="1",
            backend="numpy",
            licence="Apache-2.0",
            sample_rate_hz=RATE_HZ,
            voices=tuple(VoiceInfo(id=v, language="en", licence="Apache-2.0") for v in _VOICES),
            languages=("en", "zh"),
            slots=slots,
            max_chars=400,
            testing=True,
            chars_per_audio_s=150,
        )
        self._delay_s = delay_s
        self._sick_file = sick_file
        self._held: list[Utterance] = []

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Take utterances; they are finished in this order."""
        self._held.extend(utterances)

    def step(self) -> Sequence[Chunk]:
        """Finish the utterance that was admitted first."""
        if not self._held:
            return ()
        for utterance in self._held:
            _provoke(utterance.text, held=len(self._held))
        if self._delay_s:
            time.sleep(self._delay_s)
        utterance = self._held.pop(0)
        sick = "[[sick]]" in utterance.text and Path(self._sick_file).is_file()
        if sick or "[[fail]]" in utterance.text:
            nothing = np.zeros(0, np.float32)
            return (Chunk(utterance.id, nothing, final=True, error="the text asked for it"),)
        mark = utterance_hash(utterance.text, utterance.voice, utterance.speed)
        return (Chunk(utterance.id, encode(mark, RATE_HZ), final=True),)

    def drop(self, ids: Collection[str]) -> None:
        """Forget utterances that are not finished."""
        self._held = [u for u in self._held if u.id not in ids]


def _provoke(text: str, *, held: int) -> None:
    if "[[" not in text:
        return
    if "[[crash]]" in text:
        os.abort()
    if "[[hang]]" in text:
        threading.Event().wait()
    if "[[raise]]" in text:
        raise RuntimeError("the text asked for it")
    if "[[oom]]" in text and held > 1:
        raise MemoryError


def build(*, delay_s: float = 0.0, slots: int = 8, sick_file: str = "") -> ToneEngine:
    """Build a tone engine that takes `delay_s` seconds an utterance."""
    return ToneEngine(delay_s=delay_s, slots=slots, sick_file=sick_file)
