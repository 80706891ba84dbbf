"""The English default voice: hibari's ONNX model on one CPU thread. Knows no batch.

A static engine of one slot: on a CPU a batch of this small model is no faster than its members one
after the other (measured in torch on one core: 75 times real time alone, 34 to 50 in batches of 8;
this int8 model: 200), so a farm runs one single-threaded host a core instead. Same utterance, same
samples, bit for bit: the model is deterministic and its noise comes from the utterance's seed.
"""

from collections.abc import Collection, Sequence

import hibari
import numpy as np

from shared.errors import UtteranceError
from worker.engines.base import Chunk, Samples, Utterance
from worker.engines.hibari_text import HibariText
from worker.engines.hibari_voice import check_speed, hibari_info


class HibariEngine:
    """One utterance a step, with the voice that ships in the package (no network, ever)."""

    def __init__(self) -> None:
        self.info = hibari_info("onnx-cpu-int8", name="hibari", slots=1)
        self._text = HibariText()
        self._model = hibari.Hibari(voice="heart", threads=1)
        self._held: list[Utterance] = []

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Take the next utterance."""
        self._held.extend(utterances)

    def step(self) -> Sequence[Chunk]:
        """Speak what is held; an utterance that cannot be spoken whole comes back as an error."""
        held, self._held = self._held, []
        return [self._speak(utterance) for utterance in held]

    def drop(self, ids: Collection[str]) -> None:
        """Forget utterances that are not spoken yet."""
        self._held = [u for u in self._held if u.id not in ids]

    def _speak(self, utterance: Utterance) -> Chunk:
        try:
            samples = self._render(utterance)
        except UtteranceError as error:
            return Chunk(utterance.id, np.zeros(0, np.float32), final=True, error=str(error))
        return Chunk(utterance.id, samples, final=True)

    def _render(self, utterance: Utterance) -> Samples:
        check_speed(utterance.speed)
        noise = np.random.default_rng(utterance.seed)
        passes = [
            self._model.from_ids(ids, utterance.speed, noise)
            for ids in self._text.phoneme_ids(utterance.text)
        ]
        samples: Samples = np.clip(np.concatenate(passes), -1.0, 1.0)
        return samples


def build() -> HibariEngine:
    """Load model, lexicon and tagger: about 0.6 s and 210 MB."""
    return HibariEngine()
