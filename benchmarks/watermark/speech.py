"""Speech to mark: rendered once by the farm's own engines into a cache folder. Knows no watermark.

Material for tests and material for tuning share no text and no voice but the default one, which
speaks other chapters with other noise.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.planned import FOUR_CHAPTERS, SAMPLE, TEN_CHAPTERS, sentences
from worker.assembly.stitch import Clip, Stitcher
from worker.engines.base import Engine, Samples, Utterance
from worker.engines.registry import build

RATE_HZ = 24_000  # of both engines
PAUSE_S = 0.35
_CHINESE = Path(__file__).parents[1] / "texts" / "chinese-phrases.json"


@dataclass(frozen=True, slots=True)
class Material:
    """One voice speaking one text for about `length_s` seconds."""

    name: str
    engine: str
    voice: str
    language: str
    length_s: float
    seed: int


TEST = (
    Material("hibari-heart", "hibari", "heart", "en", 900, seed=1),
    Material("kokoro-xiaoxiao", "kokoro", "zf_xiaoxiao", "zh", 240, seed=2),
    Material("kokoro-yunxi", "kokoro", "zm_yunxi", "zh", 240, seed=3),
    Material("kokoro-michael", "kokoro", "am_michael", "en", 240, seed=4),
)
TUNING = (
    Material("tuning-heart", "hibari", "heart", "en", 300, seed=11),
    Material("tuning-yunyang", "kokoro", "zm_yunyang", "zh", 100, seed=12),
    Material("tuning-emma", "kokoro", "bf_emma", "en", 100, seed=13),
)


def speech(material: Material, cache: Path, kokoro_folder: str | None) -> Samples:
    """The material's samples at `RATE_HZ`, from the cache or rendered into it."""
    path = cache / f"{material.name}-{material.length_s:.0f}s-{material.seed}.flac"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        options = {"folder": kokoro_folder} if kokoro_folder and material.engine == "kokoro" else {}
        samples = _render(build(material.engine, options), material)
        draft = path.with_suffix(".part")
        soundfile.write(draft, samples, RATE_HZ, format="FLAC", subtype="PCM_24")
        draft.replace(path)
    samples, _ = soundfile.read(path, dtype="float32")
    return samples


def chinese_sentences(seed: int) -> Iterator[str]:
    """Plain sentences without end, put together from phrases."""
    phrases = json.loads(_CHINESE.read_text(encoding="utf-8"))
    draw = random.Random(seed)
    while True:
        frame = draw.choice(phrases["frames"])
        yield frame.format(**{part: draw.choice(phrases[part]) for part in phrases["parts"]})


def _texts(material: Material) -> Iterator[str]:
    if material.language == "zh":
        yield from chinese_sentences(material.seed)
        return
    tuning = material in TUNING
    book = (FOUR_CHAPTERS if tuning else TEN_CHAPTERS).read_text(encoding="utf-8")
    if material.engine == "kokoro" and tuning:
        book = SAMPLE.read_text(encoding="utf-8")
    planned = sentences(book)
    if not tuning:  # the second half of ten chapters: none of the four
        half = len(planned) // 2
        start = half + (material.seed - 1) * (half // 5)
        planned = planned[start:] + planned[half:start]
    yield from planned


def _render(engine: Engine, material: Material) -> Samples:
    clips, total_s = list[Clip](), 0.0
    for number, text in enumerate(_texts(material)):
        said = _said(engine, material, number, text)
        if said is None:
            continue
        clips.append(Clip(number, said, PAUSE_S))
        total_s += len(said) / RATE_HZ + PAUSE_S
        if total_s >= material.length_s:
            break
    stitcher = Stitcher(in_rate_hz=engine.info.sample_rate_hz, out_rate_hz=RATE_HZ)
    return np.concatenate(list(stitcher.blocks(clips)))


def _said(engine: Engine, material: Material, number: int, text: str) -> Samples | None:
    """What the engine makes of a text; None where it refuses."""
    seed = material.seed * 1_000_003 + number
    engine.admit([Utterance("one", text, material.voice, material.language, 1.0, seed)])
    pieces = list[Samples]()
    while True:
        for chunk in engine.step():
            if chunk.error:
                return None
            pieces.append(chunk.samples)
            if chunk.final:
                return np.concatenate(pieces)


def active(samples: Samples, rate_hz: int) -> np.ndarray:
    """Which 20 ms stretches hold speech: within 40 dB of the loud ones. Shape (stretches,)."""
    length = round(0.02 * rate_hz)
    whole = samples[: len(samples) // length * length].reshape(-1, length)
    power = (whole.astype(np.float64) ** 2).mean(axis=1)
    return power > np.quantile(power, 0.95) * 1e-4


def crops(
    samples: Samples, rate_hz: int, length_s: float, draw: random.Random, *, share: float = 0.6
) -> Iterator[tuple[int, int]]:
    """Random (start, end) in samples, without end, each with at least `share` of active speech."""
    busy = np.concatenate([[0], np.cumsum(active(samples, rate_hz))])
    step, length = round(0.02 * rate_hz), round(length_s * rate_hz)
    while True:
        start = draw.randrange(len(samples) - length + 1)
        first, last = start // step, min(len(busy) - 1, (start + length) // step)
        if busy[last] - busy[first] >= share * (last - first):
            yield start, start + length
