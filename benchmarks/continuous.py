"""An autoregressive device behind a real engine host: how full its slots are, and how fast it is.

The planned segments of a book go through (a) static batches of 8 in order, (b) static batches of
8 sorted by length, both on the bare engine, so that no host costs them anything, and (c) our host,
which refills a finished row's slot. The ideal is computed: rows put into free slots in order, no
time lost between steps. Engine sleeps are real in all arms.
"""

import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.planned import FOUR_CHAPTERS, sentences
from worker.engines.base import Utterance
from worker.engines.simulated_ar import build, steps_of
from worker.host.link import HostLink
from worker.host.protocol import Vitals
from worker.host.spawn import spawn_host

SLOTS = 8
BASE_S, PER_ROW_S = 0.02, 0.0025
ENGINE = {"base_s": BASE_S, "per_row_s": PER_ROW_S, "slots": SLOTS}
READY_S = 60.0
SENDERS = 2 * SLOTS


def measure(segments: int) -> dict[str, object]:
    """All arms on the first `segments` of the planned book."""
    asked = [_utterance(n, text) for n, text in enumerate(_book()[:segments])]
    steps = [steps_of(u.text, u.seed) for u in asked]
    by_length = sorted(asked, key=lambda u: len(u.text))
    ours_s, occupancy = _through_host(asked)
    ideal_s = continuous_s(steps)
    row_steps = sum(steps)
    walls_s = {
        "static": _static(asked),
        "static_sorted": _static(by_length),
        "ours": ours_s,
        "ideal": ideal_s,
    }
    return {
        "slot_segments": len(asked),
        "slot_row_steps": row_steps,
        "slot_wall_s": {arm: round(wall_s, 2) for arm, wall_s in walls_s.items()},
        "slot_rows_per_s": {arm: round(row_steps / wall_s, 1) for arm, wall_s in walls_s.items()},
        "slot_occupancy": round(occupancy, 3),
        "slot_throughput_of_ideal": round(ideal_s / ours_s, 3),
    }


def continuous_s(steps: Sequence[int]) -> float:
    """Time that rows of these lengths take in slots that are refilled in order, none lost."""
    waiting, running, wall_s = list(reversed(steps)), list[int](), 0.0
    while waiting or running:
        while waiting and len(running) < SLOTS:
            running.append(waiting.pop())
        together = min(running)
        wall_s += together * (BASE_S + PER_ROW_S * len(running))
        running = [left - together for left in running if left > together]
    return wall_s


def _book() -> list[str]:
    return sentences(FOUR_CHAPTERS.read_text(encoding="utf-8"), engine="simulated-ar")


def _utterance(number: int, text: str) -> Utterance:
    return Utterance(
        str(number), text, "tone", "en", 1.0, seed=number, tier="bulk", due_at=float(number)
    )


def _static(asked: Sequence[Utterance]) -> float:
    """Batches of 8 in the order given, each until its longest row is over."""
    engine = build(base_s=BASE_S, per_row_s=PER_ROW_S, slots=SLOTS)
    began_s = time.perf_counter()
    for first in range(0, len(asked), SLOTS):
        batch = asked[first : first + SLOTS]
        engine.admit(batch)
        over = 0
        while over < len(batch):
            over += sum(chunk.final for chunk in engine.step())
    return time.perf_counter() - began_s


def _through_host(asked: Sequence[Utterance]) -> tuple[float, float]:
    """Seconds through a real host, and the share of slots in use while something waited."""
    with tempfile.TemporaryDirectory(prefix="vf") as folder:
        path = Path(folder) / "host.sock"
        process = spawn_host("simulated-ar", path, options=ENGINE)
        link = HostLink(path, silence_s=30)
        try:
            link.wait_ready(READY_S, alive=lambda: process.poll() is None)
            return _send(link, asked)
        finally:
            link.close()
            process.kill()
            process.wait()


def _send(link: HostLink, asked: Sequence[Utterance]) -> tuple[float, float]:
    lock, rest, last = threading.Lock(), iter(asked), list[Vitals]()

    def work() -> None:
        while True:
            with lock:
                utterance = next(rest, None)
            if utterance is None:
                last.append(link.ping())  # the first to find nothing: until now all was full
                return
            link.synthesize(utterance, on_progress=lambda: None)

    before, began_s = link.ping(), time.perf_counter()
    with ThreadPoolExecutor(SENDERS) as pool:
        for future in [pool.submit(work) for _ in range(SENDERS)]:
            future.result()
    wall_s, until = time.perf_counter() - began_s, min(last, key=lambda vitals: vitals.steps)
    rows = until.row_steps - before.row_steps
    return wall_s, rows / (until.steps - before.steps) / SLOTS
