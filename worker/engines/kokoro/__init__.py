"""Kokoro-82M: Chinese, English and sentences of both, on one CPU thread, in many voices.

A static engine of one slot: the export takes one utterance at a time, so a farm runs one
single-threaded host a core. Same utterance, same samples, bit for bit: the model draws no noise.
Knows arrays and tokens; the text is read by `text`, the voices by `styles`.
"""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnxruntime

from shared.errors import SetupError, UtteranceError
from shared.voices import EngineInfo
from worker.engines.base import Chunk, Samples, Utterance
from worker.engines.kokoro.folder import ModelFiles, find_files
from worker.engines.kokoro.presets import LICENCE, presets
from worker.engines.kokoro.styles import read_styles, style_of
from worker.engines.kokoro.text import REVISION, MixedText

RATE_HZ = 24_000
MIN_SPEED, MAX_SPEED = 0.5, 2.0
MAX_CHARS = 240  # one pass of the model for all English and for nearly every Chinese sentence
MIN_CHARS = 6  # a syllable or two have hardly a melody of their own: they go with a neighbour
_PAD = 0
_INPUTS = {"tokens", "style", "speed"}


@dataclass(slots=True)
class _Speaking:
    """An utterance and the passes of the model that are left of it; None: not read yet."""

    utterance: Utterance
    passes: deque[list[int]] | None = field(default=None)


class KokoroEngine:
    """One pass of the model a step, so that a long utterance shows progress."""

    def __init__(self, files: ModelFiles) -> None:
        voices = tuple(voice for voice in presets() if voice.id in files.voices)
        if not voices:
            raise SetupError(f"none of Kokoro's Chinese and English voices is beside {files.model}")
        self.info = EngineInfo(
            name="kokoro",
            version=f"1.0-{files.revision}+r{REVISION}",
            backend="onnx-cpu",
            licence=LICENCE,
            sample_rate_hz=RATE_HZ,
            voices=voices,
            languages=("zh", "en"),
            slots=1,
            max_chars=MAX_CHARS,
            min_chars=MIN_CHARS,
            blends=True,
            chars_per_audio_s=16.5,  # both measured as stitched: silent ends trimmed, pauses apart
            ideographs_per_audio_s=5.3,
        )
        self._styles = read_styles({voice.id: files.voices[voice.id] for voice in voices})
        self._model = _load(files)
        self._text = MixedText()
        self._held: list[_Speaking] = []

    def admit(self, utterances: Sequence[Utterance]) -> None:
        """Take the next utterance."""
        self._held.extend(_Speaking(utterance) for utterance in utterances)

    def step(self) -> Sequence[Chunk]:
        """Speak on; an utterance that cannot be spoken whole comes back as an error at once."""
        if not self._held:
            return ()
        speaking = self._held[0]
        try:
            chunk = self._advance(speaking)
        except UtteranceError as error:
            nothing = np.zeros(0, np.float32)
            chunk = Chunk(speaking.utterance.id, nothing, final=True, error=str(error))
        if chunk.final:
            self._held.pop(0)
        return (chunk,)

    def drop(self, ids: Collection[str]) -> None:
        """Forget utterances that are not spoken to their end."""
        self._held = [one for one in self._held if one.utterance.id not in ids]

    def _advance(self, speaking: _Speaking) -> Chunk:
        utterance = speaking.utterance
        if speaking.passes is None:
            if not MIN_SPEED <= utterance.speed <= MAX_SPEED:
                raise UtteranceError(f"speed must lie between {MIN_SPEED} and {MAX_SPEED}")
            speaking.passes = deque(self._text.token_ids(utterance.text, utterance.language))
        ids = speaking.passes.popleft()
        samples = self._speak(ids, utterance)
        return Chunk(utterance.id, samples, final=not speaking.passes)

    def _speak(self, ids: Sequence[int], utterance: Utterance) -> Samples:
        style = style_of(utterance.voice, len(ids), self._styles, self.info)
        (audio,) = self._model.run(
            None,
            {
                "tokens": np.array([[_PAD, *ids, _PAD]], np.int64),
                "style": style,
                "speed": np.array([utterance.speed], np.float32),
            },
        )
        samples: Samples = np.clip(np.asarray(audio, np.float32).reshape(-1), -1.0, 1.0)
        return samples


def build(*, folder: str | None = None) -> KokoroEngine:
    """Load the model, voices and dictionaries of a folder: about 1.5 s and 470 MB.

    The longest passes take the process to 1.1 GB, where it stays.
    SetupError, with the command that mends it, when the files are not there or not whole.
    """
    return KokoroEngine(find_files(folder))


def _load(files: ModelFiles) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            str(files.model), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise SetupError(
            f"{files.model} is no model that ONNX Runtime can load ({type(error).__name__}): "
            "voxfarm voices install kokoro",
            mend="voxfarm voices install kokoro",
        ) from error
    inputs = {one.name for one in session.get_inputs()}
    if inputs != _INPUTS:
        raise SetupError(
            f"{files.model} takes {', '.join(sorted(inputs))}, not {', '.join(sorted(_INPUTS))}: "
            "it is another export of Kokoro than the one this engine drives"
        )
    return session
