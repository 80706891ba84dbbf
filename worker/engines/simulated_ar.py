"""A simulated autoregressive device: rows of different length in slots, and no CPU used.

A step with n rows takes `base_s + per_row_s * n` seconds of sleep and moves each of them on. How
many steps a row needs depends on its text and seed alone, so equal utterances sound equal whatever
their neighbours. Audio comes out in chunks while rows run; a row that is over leaves its slot at
once, and the host refills it before the next step.
"""

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from worker.engines.base import Chunk, Utterance
from worker.engines.simulated_device import CHARS_PER_S, RATE_HZ, device_info, tone

CHARS_PER_STEP = 3  # so a step makes 0.2 s of audio of each row
SPREAD = 0.25  # two readings of one text differ in length by as much
CHUNK_STEPS = 8
_SAMPLES_PER_STEP = CHARS_PER_STEP * RATE_HZ // CHARS_PER_S


def steps_of(text: str, seed: int) -> int:
    """How many steps a row needs: proportional to its characters, with the seed's own spread."""
    pace = random.Random(seed).uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311 - no secret
    return max(1, round(len(text) / CHARS_PER_STEP * pace))


@dataclass(slots=True)
class _Row:
    id: str
    left: int  # steps
    unsent: int = 0  # steps whose audio has not been handed out


class SimulatedArEngine:
    """Holds up to `slots` rows and advances all of them by one decode step."""

    def __init__(self, *, base_s: float, per_row_s: float, slots: int) -> None:
        self.info = device_info("simulated-ar", slots=slots, streams=True)
        self._base_s = base_s
        self._per_row_s = per_row_s
        self._audio = tone(CHUNK_STEPS * _SAMPLES_PER_STEP / RATE_HZ)
        self._rows: dict[str, _Row] = {}

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Put utterances into free slots; they join the next step."""
        self._rows.update((u.id, _Row(u.id, steps_of(u.text, u.seed))) for u in utterances)

    def step(self) -> Sequence[Chunk]:
        """Sleep as long as a decode step would take; hand out the audio of rows that have some."""
        if self._rows:
            time.sleep(self._base_s + self._per_row_s * len(self._rows))
        return [chunk for row in list(self._rows.values()) if (chunk := self._advance(row))]

    def drop(self, ids: Collection[str]) -> None:
        """Free the slots of rows that nobody wants any more."""
        for id_ in ids:
            self._rows.pop(id_, None)

    def _advance(self, row: _Row) -> Chunk | None:
        row.left -= 1
        row.unsent += 1
        if row.left and row.unsent < CHUNK_STEPS:
            return None
        samples = self._audio[: row.unsent * _SAMPLES_PER_STEP]
        row.unsent = 0
        if not row.left:
            del self._rows[row.id]
        return Chunk(row.id, samples, final=not row.left)


def build(*, base_s: float = 0.02, per_row_s: float = 0.0025, slots: int = 8) -> SimulatedArEngine:
    """Build a device whose step with n rows takes `base_s + per_row_s * n` seconds."""
    return SimulatedArEngine(base_s=base_s, per_row_s=per_row_s, slots=slots)
