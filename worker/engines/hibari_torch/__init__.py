"""hibari in torch: batches of up to 8 on one device, each row as it would sound alone.

A static engine: one step renders all that is held. On a CPU equal utterances give equal bits in any
company; on a GPU they are equal up to rounding. Noise comes from one generator an utterance.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from shared.errors import SetupError, UtteranceError
from worker.engines.base import Chunk, Samples, Utterance
from worker.engines.hibari_text import HibariText
from worker.engines.hibari_torch.network import BINS, Network
from worker.engines.hibari_torch.signal import synthesize
from worker.engines.hibari_torch.weights import load_weights
from worker.engines.hibari_voice import check_speed, hibari_info

SLOTS = 8
_WARM_UP = ("One.", "Two words.", "And a sentence that is longer than the others are.")


class _Row:
    """One pass of the network: an utterance, or a part of one that is too long for a pass."""

    def __init__(self, utterance: Utterance, ids: list[int], noise: torch.Generator) -> None:
        self.utterance = utterance
        self.ids = ids
        self.noise = noise


class HibariTorchEngine:
    """Renders batches on `device`."""

    def __init__(self, device: torch.device) -> None:
        self.info = hibari_info(
            f"torch-{device.type}-fp32", name="hibari-torch", slots=SLOTS, pads=True
        )
        self._device = device
        self._text = HibariText()
        self._network = Network(load_weights(device))
        self._held: list[Utterance] = []

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Take utterances for the next batch."""
        self._held.extend(utterances)

    def step(self) -> Sequence[Chunk]:
        """Speak the whole batch. Raises MemoryError when it does not fit the device.

        A batch that was not spoken stays held, to be dropped.
        """
        chunks: list[Chunk] = []
        rows: list[_Row] = []
        for utterance in self._held:
            try:
                rows += self._rows(utterance)
            except UtteranceError as error:
                nothing = np.zeros(0, np.float32)
                chunks.append(Chunk(utterance.id, nothing, final=True, error=str(error)))
        try:
            with torch.inference_mode():
                spoken = list(self._speak(rows))
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            raise MemoryError from error
        self._held = []
        return chunks + spoken

    def drop(self, ids: Collection[str]) -> None:
        """Forget utterances of the batch to come."""
        self._held = [u for u in self._held if u.id not in ids]

    def _rows(self, utterance: Utterance) -> list[_Row]:
        check_speed(utterance.speed)
        noise = torch.Generator(self._device).manual_seed(utterance.seed)
        return [_Row(utterance, ids, noise) for ids in self._text.phoneme_ids(utterance.text)]

    def _speak(self, rows: Sequence[_Row]) -> Iterator[Chunk]:
        for at in range(0, len(rows), SLOTS):
            batch = rows[at : at + SLOTS]
            for i, (row, samples) in enumerate(zip(batch, self._render(batch), strict=True), at):
                last = i + 1 == len(rows) or rows[i + 1].utterance is not row.utterance
                yield Chunk(row.utterance.id, samples, final=last)

    def _render(self, rows: Sequence[_Row]) -> list[Samples]:
        lengths = torch.tensor([len(row.ids) for row in rows], device=self._device)
        ids = torch.zeros((len(rows), int(lengths.max())), dtype=torch.long, device=self._device)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = torch.tensor(row.ids, device=self._device)
        speed = torch.tensor([row.utterance.speed for row in rows], device=self._device)
        spectrum = self._network(ids, lengths, speed)
        noise = self._noise(rows, spectrum.frames)
        return [wave.clamp(-1, 1).cpu().numpy() for wave in synthesize(spectrum, noise)]

    def _noise(self, rows: Sequence[_Row], frames: Tensor) -> Tensor:
        """Unit complex Gaussian noise (B, F, 601), from each utterance's own generator."""
        noise = torch.zeros((len(rows), int(frames.max()), BINS, 2), device=self._device)
        for i, (row, count) in enumerate(zip(rows, frames.tolist(), strict=True)):
            noise[i, :count].normal_(generator=row.noise)
        return torch.view_as_complex(noise)


def build(*, device: str = "") -> HibariTorchEngine:
    """Load the weights onto `device` (default: the GPU if there is one) and warm up.

    Raises SetupError for a device that is not there.
    """
    torch.set_num_threads(1)  # a host is one core's work
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=place)
    except (RuntimeError, AssertionError) as error:
        raise SetupError(
            f"torch has no device {device!r} here; mend it with a driver and a torch build for "
            "it, or give the option device=cpu",
            mend="""VOXFARM_ENGINE_OPTIONS='{"hibari-torch": {"device": "cpu"}}'""",
        ) from error
    engine = HibariTorchEngine(place)
    for count in (1, SLOTS):  # kernels and buffers for the smallest and the largest batch
        texts = [_WARM_UP[i % len(_WARM_UP)] for i in range(count)]
        engine.admit([Utterance(str(i), t, "heart", "en", 1.0, i) for i, t in enumerate(texts)])
        engine.step()
    return engine
