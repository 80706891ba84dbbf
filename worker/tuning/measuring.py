"""Runs one engine over batch sizes and text lengths. Knows neither host nor farm.

Every member of a batch is also spoken alone, with the same seed, so that the two can be compared.
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
from worker.tuning.texts import text_of

_MB = 1e6
_MIB = 1024 * 1024
_FLOOR = 1e-12  # keeps silence out of the logarithm


@dataclass(frozen=True, slots=True)
class _Run:
    batch_s: float
    first_chunk_s: float
    audio: dict[str, Samples]


def measure(
    engine: Engine, *, batches: Sequence[int], lengths: Sequence[int], repeats: int
) -> Iterator[Figures]:
    """Figures of each length and batch size, as they come; sizes beyond the slots are left out.

    After a fault the larger batches of that length are not tried.
    """
    sizes = sorted({size for size in batches if 1 <= size <= engine.info.slots})
    for chars in sorted({min(length, engine.info.max_chars) for length in lengths}):
        texts = [text_of(engine.info.languages[0], chars, n) for n in range(max(sizes))]
        utterances = [_utterance(engine, text, n) for n, text in enumerate(texts)]
        _run(engine, utterances[:1])  # the first of a shape may compile or allocate
        alone = {u.id: _run(engine, [u]).audio[u.id] for u in utterances}
        for size in sizes:
            figures = _try(engine, utterances[:size], alone, chars=chars, repeats=repeats)
            yield figures
            if figures.fault:
                break


def difference_db(heard: Samples, alone: Samples) -> float | None:
    """How far `heard` lies from `alone`, see Figures."""
    if len(heard) != len(alone):
        return 0.0
    if np.array_equal(heard, alone):
        return None
    error = float(np.sqrt(np.mean(np.square(heard.astype(np.float64) - alone))))
    level = float(np.sqrt(np.mean(np.square(alone.astype(np.float64)))))
    return float(20 * np.log10(max(error, _FLOOR) / max(level, _FLOOR)))


def _try(
    engine: Engine,
    utterances: Sequence[Utterance],
    alone: dict[str, Samples],
    *,
    chars: int,
    repeats: int,
) -> Figures:
    try:
        _run(engine, utterances)
        runs = [_run(engine, utterances) for _ in range(repeats)]
    except Exception as error:  # noqa: BLE001 - an engine may raise whatever it likes
        engine.drop([u.id for u in utterances])
        return Figures(batch=len(utterances), chars=chars, fault=type(error).__name__)
    distances = [difference_db(run.audio[id_], alone[id_]) for run in runs for id_ in run.audio]
    audible = [distance for distance in distances if distance is not None]
    samples = sum(map(len, runs[0].audio.values()))
    return Figures(
        batch=len(utterances),
        chars=chars,
        batch_s=statistics.median(run.batch_s for run in runs),
        first_chunk_s=statistics.median(run.first_chunk_s for run in runs),
        audio_s=samples / engine.info.sample_rate_hz,
        memory_mb=resident_bytes() / _MB + _device_mb(),
        difference_db=max(audible) if audible else None,
    )


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
    return _Run(wall_s, first_s, {id_: np.concatenate(parts) for id_, parts in chunks.items()})


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
