"""The bare engine: texts rendered by plain processes, one thread each, with no farm around them.

What the farm is measured against. Loading is excluded; the texts are handed out one batch after the
other, so no process waits for another until the end.

Run: python -m benchmarks.engine_bare --engine hibari --processes 2 --json -
"""

import multiprocessing as mp
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.planned import FOUR_CHAPTERS, sentences
from benchmarks.report import emit, parser
from worker.engines.base import Engine, Utterance
from worker.engines.registry import build
from worker.host.canary import speak_canary

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue


@dataclass(frozen=True, slots=True)
class Bare:
    """What a bare run took and gave. `cpu_s` is summed over the processes."""

    wall_s: float
    cpu_s: float
    audio_s: float
    refused: int


def render_bare(engine: str, texts: Sequence[str], *, processes: int) -> Bare:
    """Render all texts with `processes` single-threaded processes of an engine."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # inherited by the children
    context = mp.get_context("spawn")
    ready = context.Barrier(processes + 1)
    next_text = context.Value("l", 0)
    results: SimpleQueue[tuple[float, float, float, int]] = context.SimpleQueue()
    arguments = (engine, list(texts), ready, next_text, results)
    workers = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(processes)]
    for worker in workers:
        worker.start()
    ready.wait(120)
    began_s = time.perf_counter()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a process of the bare engine died")
    figures = [results.get() for _ in workers]
    ended_s, cpu_s, audio_s, refused = zip(*figures, strict=True)
    return Bare(max(ended_s) - began_s, sum(cpu_s), sum(audio_s), sum(refused))


def _work(
    name: str,
    texts: Sequence[str],
    ready: Barrier,
    next_text: Any,  # noqa: ANN401 - a synchronized wrapper without a public type
    results: "SimpleQueue[tuple[float, float, float, int]]",
) -> None:
    engine = build(name, {})
    speak_canary(engine)
    ready.wait()
    began_s, samples, refused = time.process_time(), 0, 0
    while True:
        with next_text.get_lock():
            first = next_text.value
            next_text.value += engine.info.slots
        batch = texts[first : first + engine.info.slots]
        if not batch:
            break
        for length in _render(engine, first, batch):
            samples += length
            refused += length == 0
    cpu_s, audio_s = time.process_time() - began_s, samples / engine.info.sample_rate_hz
    results.put((time.perf_counter(), cpu_s, audio_s, refused))  # one clock for all processes


def _render(engine: Engine, first: int, batch: Sequence[str]) -> list[int]:
    """Samples of each text of a batch; 0 for one that the engine refuses."""
    info = engine.info
    engine.admit(
        [
            Utterance(str(n), text, info.default_voice, info.languages[0], 1.0, n)
            for n, text in enumerate(batch, first)
        ]
    )
    lengths: dict[str, int] = {}
    over = 0
    while over < len(batch):
        for chunk in engine.step():
            lengths[chunk.utterance_id] = lengths.get(chunk.utterance_id, 0) + len(chunk.samples)
            over += chunk.final
    return list(lengths.values())


def main() -> None:
    """Render a text, sentence by sentence, and report."""
    options = parser(__doc__)
    options.add_argument(
        "file", nargs="?", type=Path, help="one text a line; default: four chapters of a novel"
    )
    options.add_argument("--engine", default="hibari")
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = options.parse_args()
    if args.file is None:
        texts = sentences(FOUR_CHAPTERS.read_text(encoding="utf-8"), engine=args.engine)
    else:
        lines = args.file.read_text(encoding="utf-8").splitlines()
        texts = [line for line in lines if line.strip()]
    bare = render_bare(args.engine, texts, processes=args.processes)
    figures = {
        "engine": args.engine,
        "processes": args.processes,
        "texts": len(texts),
        **asdict(bare),
        "x_real_time": bare.audio_s / bare.wall_s,
    }
    emit(figures, [], args.json)


if __name__ == "__main__":
    main()
