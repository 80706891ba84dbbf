"""Runs one engine over batch sizes and text lengths. Knows neither host nor farm.

Every member of a batch is also spoken alone, with the same seed, so that the two can be compared;
in batches of one length, and in batches of mixed lengths, since such are what a farm runs.
"""

import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shared.errors import UtteranceError
from worker.engines.base import Engine, Samples, Utterance
from worker.host.wear import resident_bytes
from worker.tuning.figures import Figures
from worker.tuning.plan import Plan
from worker.tuning.texts import LEAST_CHARS, text_of

_MB = 1e6
_MIB = 1024 * 1024
_FLOOR = 1e-12  # keeps silence out of the logarithm


@dataclass(frozen=True, slots=True)
class _Run:
    batch_s: float
    first_chunk_s: float
    audio: dict[str, Samples]


def measure(engine: Engine, plan: Plan, *, repeats: int) -> Iterator[Figures]:
    """Figures of each length, last of mixed lengths, and each batch size, as they come.

    The plan lies within the engine's slots and lengths. After a fault the larger batches of that
    length are not tried; a text that fails alone is its batch's fault.
    """
    for chars in plan.lengths:
        yield from _sizes(engine, [chars], plan.batches, repeats=repeats)
    shared_by = tuple(size for size in plan.batches if size > 1)
    if shared_by:
        yield from _sizes(engine, mixture(plan.lengths), shared_by, repeats=repeats)


def mixture(lengths: Sequence[int]) -> list[int]:
    """The lengths of a mixed batch's members, in turn; the first two are the furthest apart."""
    if len(lengths) == 1:
        lengths = [max(LEAST_CHARS, lengths[0] // 2), *lengths]
    ascending = sorted(lengths)
    half = len(ascending) // 2
    pairs = zip(reversed(ascending[half:]), ascending, strict=False)
    turns = [length for pair in pairs for length in pair]
    return turns[: len(ascending)]


def _sizes(
    engine: Engine, lengths: Sequence[int], sizes: Sequence[int], *, repeats: int
) -> Iterator[Figures]:
    """Figures of batches whose members have these lengths in turn."""
    language = engine.info.languages[0]
    texts = [text_of(language, lengths[n % len(lengths)], n) for n in range(max(sizes))]
    utterances = [_utterance(engine, text, n) for n, text in enumerate(texts)]
    alone: dict[str, Samples] = {}
    for size in sizes:
        blank = Figures(batch=size, chars=max(lengths), mixed=len(lengths) > 1)
        figures = blank.model_copy(update=_try(engine, utterances[:size], alone, repeats=repeats))
        yield figures
        if figures.fault:
            break


def difference_db(heard: Samples, alone: Samples) -> float | None:
    """How far `heard` lies from `alone`, see Figures."""
    if len(heard) != len(alone) or not np.isfinite(heard).all() or not np.isfinite(alone).all():
        return 0.0
    if np.array_equal(heard, alone):
        return None
    error = float(np.sqrt(np.mean(np.square(heard.astype(np.float64) - alone))))
    level = float(np.sqrt(np.mean(np.square(alone.astype(np.float64)))))
    return float(20 * np.log10(max(error, _FLOOR) / max(level, _FLOOR)))


def _try(
    engine: Engine, utterances: Sequence[Utterance], alone: dict[str, Samples], *, repeats: int
) -> dict[str, object]:
    """One batch's figures; members that `alone` lacks are spoken alone first, and put there."""
    try:
        for utterance in utterances:
            if utterance.id not in alone:
                alone[utterance.id] = _run(engine, [utterance]).audio[utterance.id]
        _run(engine, utterances)  # the first of a shape may compile or allocate
        runs = [_run(engine, utterances) for _ in range(repeats)]
    except Exception as error:  # noqa: BLE001 - an engine may raise whatever it likes
        engine.drop([u.id for u in utterances])
        return {"fault": type(error).__name__}
    distances = [difference_db(run.audio[id_], alone[id_]) for run in runs for id_ in run.audio]
    audible = [distance for distance in distances if distance is not None]
    samples = sum(map(len, runs[0].audio.values()))
    return {
        "batch_s": statistics.median(run.batch_s for run in runs),
        "first_chunk_s": statistics.median(run.first_chunk_s for run in runs),
        "audio_s": samples / engine.info.sample_rate_hz,
        "memory_mb": resident_bytes() / _MB + _device_mb(),
        "difference_db": max(audible) if audible else None,
    }


def _run(engine: Engine, utterances: Sequence[Utterance]) -> _Run:
    began_s, first_s = time.perf_counter(), 0.0
    chunks: dict[str, list[Samples]] = {u.id: [] for u in utterances}
    engine.admit(utterances)
    over = 0
    while over < len(utterances):
        for chunk in engine.step():
            if chunk.error is not None:
                raise UtteranceError(chunk.error)
            first_s = first_s or time.perf_counter() - began_s
            chunks[chunk.utterance_id].append(chunk.samples)
            over += chunk.final
    wall_s = time.perf_counter() - began_s
    audio = {id_: np.concatenate(parts) for id_, parts in chunks.items()}
    if not all(samples.size for samples in audio.values()):
        raise UtteranceError("the engine said nothing")
    return _Run(wall_s, first_s, audio)


def _utterance(engine: Engine, text: str, number: int) -> Utterance:
    info = engine.info
    return Utterance(
        f"t{number}", text, info.default_voice, info.languages[0], speed=1.0, seed=number
    )


def _device_mb() -> float:
    """Memory that NVIDIA devices of this machine have in use; 0 without one."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0.0
    query = [program, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
        return sum(float(line) for line in told.stdout.split()) * _MIB / _MB
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0.0
