"""A simulated device for measuring the farm around an engine: it sleeps and computes nothing.

A static engine: a batch of n takes `base_s + per_item_s * n` seconds, whatever the texts. The audio
is a stretch of one quiet tone, as long as speech would be, so equal utterances sound equal. With a
`journal`, a file, it writes one JSON line a batch, with its texts: for measurements of texts that
are nobody's secret.
"""

import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from worker.engines.base import Chunk, Utterance
from worker.engines.simulated_device import CHARS_PER_S, MAX_CHARS, RATE_HZ, device_info, tone


class SimulatedEngine:
    """Holds up to `slots` utterances and finishes all of them in one step."""

    def __init__(
        self, *, base_s: float, per_item_s: float, slots: int, journal: Path | None = None
    ) -> None:
        self.info = device_info("simulated", slots=slots)
        self._base_s = base_s
        self._per_item_s = per_item_s
        self._journal = journal
        self._audio = tone(MAX_CHARS / CHARS_PER_S)
        self._held: list[Utterance] = []

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Take utterances for the next batch."""
        self._held.extend(utterances)

    def step(self) -> Sequence[Chunk]:
        """Sleep as long as the device would work, then hand out the whole batch."""
        held, self._held = self._held, []
        if held:
            began_at = time.time()
            time.sleep(self._base_s + self._per_item_s * len(held))
            self._note(held, began_at)
        return [Chunk(u.id, self._audio[: self._length(u)], final=True) for u in held]

    def drop(self, ids: Collection[str]) -> None:
        """Forget utterances of the batch to come."""
        self._held = [u for u in self._held if u.id not in ids]

    def _note(self, batch: Sequence[Utterance], began_at: float) -> None:
        if self._journal is None:
            return
        line = {"began_at": began_at, "ended_at": time.time(), "texts": [u.text for u in batch]}
        with self._journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    @staticmethod
    def _length(utterance: Utterance) -> int:
        return min(len(utterance.text), MAX_CHARS) * RATE_HZ // CHARS_PER_S


def build(
    *, base_s: float = 0.05, per_item_s: float = 0.04, slots: int = 8, journal: str | None = None
) -> SimulatedEngine:
    """Build a device whose batch of n takes `base_s + per_item_s * n` seconds."""
    path = None if journal is None else Path(journal)
    return SimulatedEngine(base_s=base_s, per_item_s=per_item_s, slots=slots, journal=path)
