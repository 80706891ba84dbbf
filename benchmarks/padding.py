"""Mixed lengths on a static engine: what size-aware filling saves, and that nobody is late for it.

The planned segments of a book wait 24 deep in front of the real batch policy, as in a node with 8
slots; the alternative, a queue for each size, takes its batches from a window of 48. With `--torch`
the batches are really run, on the torch engine, against arrival order.

Run: python -m benchmarks.padding --json - [--torch]
"""

import sys
import time
from bisect import bisect_left
from collections.abc import Sequence

from benchmarks.planned import FOUR_CHAPTERS, sentences
from benchmarks.report import Bar, at_least, at_most, emit, parser
from worker.batching.policy import Policy, Waiting
from worker.batching.sizes import padding_chars
from worker.engines.base import Utterance
from worker.engines.registry import build
from worker.host.canary import speak_canary

BATCH, DEPTH = 8, 24
STEP_S = 1.0
WINDOW = 48  # what the queues of a tier hold for such a node
QUEUE_BOUNDS = (40, 80, 160)  # characters; the queues for sizes: up to each, and beyond
SLACK_STEPS = 12  # batches that a book is ahead of its due times
TIGHT_STEPS = 2  # and one that has to hurry


def measure() -> dict[str, object]:
    """Padding of both orders, and sentences that are late only in ours."""
    texts = _book()
    arms = {"ours": by_size(texts), "arrival": in_order(texts), "queues": by_queue(texts)}
    arms["ours_in_that_window"] = by_size(texts, depth=WINDOW)
    wasted = {
        name: sum(padding_chars([len(text) for text in batch]) for batch in batches)
        for name, batches in arms.items()
    }
    return {
        "padding_segments": len(texts),
        "padding_share": {
            name: round(chars / sum(map(len, texts)), 3) for name, chars in wasted.items()
        },
        "padding_mean_batch": {
            name: round(len(texts) / len(batches), 2) for name, batches in arms.items()
        },
        "padding_of_arrival_order": round(wasted["ours"] / wasted["arrival"], 3),
        "late_because_of_size": _late(texts),
    }


def in_order(texts: Sequence[str]) -> list[list[str]]:
    """Batches as the texts come."""
    return [list(texts[first : first + BATCH]) for first in range(0, len(texts), BATCH)]


def by_size(texts: Sequence[str], *, depth: int = DEPTH) -> list[list[str]]:
    """Batches as the policy makes them, `depth` sentences being in front of it."""
    return [[texts[int(w.id)] for w in batch] for batch in _batches(texts, depth)]


def by_queue(texts: Sequence[str]) -> list[list[str]]:
    """Batches from a queue for each size: the one whose first has waited longest is served."""
    rest, window, made = list(texts), list[str](), list[list[str]]()
    while rest or window:
        room = WINDOW - len(window)
        window, rest = window + rest[:room], rest[room:]
        size = bisect_left(QUEUE_BOUNDS, len(window[0]))
        places = [
            n for n, text in enumerate(window) if bisect_left(QUEUE_BOUNDS, len(text)) == size
        ]
        made.append([window[n] for n in places[:BATCH]])
        window = [text for n, text in enumerate(window) if n not in places[:BATCH]]
    return made


def _batches(
    texts: Sequence[str], depth: int, slack_steps: int = SLACK_STEPS
) -> list[list[Waiting]]:
    policy, pool, made = Policy(slots=BATCH, pads=True), list[Waiting](), list[list[Waiting]]()
    rest = [
        Waiting(str(n), "bulk", (n // BATCH + slack_steps) * STEP_S, len(text), 0.0)
        for n, text in enumerate(texts)
    ]
    while rest or pool:
        room = depth - len(pool)
        pool, rest = pool + rest[:room], rest[room:]
        admitted = policy.decide(
            pool,
            [],
            may_arrive=0,
            now_s=0.0,
            due_clock_s=len(made) * STEP_S,
            step_s=STEP_S,
        ).admit
        made.append([w for w in pool if w.id in admitted])
        pool = [w for w in pool if w.id not in admitted]
    return made


def _late(texts: Sequence[str]) -> int:
    return sum(
        (turn + 1) * STEP_S > waiting.due_at
        for turn, batch in enumerate(_batches(texts, DEPTH, TIGHT_STEPS))
        for waiting in batch
    )


def measure_torch(segments: int) -> dict[str, object]:
    """Texts a second of the torch engine, both orders."""
    texts = _book()[:segments]
    engine = build("hibari-torch", {})
    speak_canary(engine)
    figures = dict[str, float]()
    for name, batches in (("arrival", in_order(texts)), ("ours", by_size(texts))):
        began_s = time.perf_counter()
        for batch in batches:
            engine.admit(
                [
                    Utterance(
                        str(n), text, engine.info.default_voice, engine.info.languages[0], 1.0, n
                    )
                    for n, text in enumerate(batch)
                ]
            )
            over = 0
            while over < len(batch):
                over += sum(chunk.final for chunk in engine.step())
        figures[name] = round(len(texts) / (time.perf_counter() - began_s), 2)
    return {
        "torch_segments_per_s": figures,
        "torch_gain": round(figures["ours"] / figures["arrival"], 3),
    }


def bars(figures: dict[str, object]) -> list[Bar]:
    """What must hold of these figures."""
    made = [
        at_most("padding_of_arrival_order", float(str(figures["padding_of_arrival_order"])), 0.5),
        at_most("late_because_of_size", float(str(figures["late_because_of_size"])), 0),
    ]
    if "torch_gain" in figures:
        made.append(at_least("torch_gain", float(str(figures["torch_gain"])), 1.0))
    return made


def _book() -> list[str]:
    return sentences(FOUR_CHAPTERS.read_text(encoding="utf-8"))


def main() -> None:
    """Measure and report."""
    options = parser(__doc__)
    options.add_argument("--torch", action="store_true", help="run the batches on hibari-torch")
    options.add_argument("--segments", type=int, default=200, help="for the torch engine")
    args = options.parse_args()
    figures = measure()
    if args.torch:
        figures |= measure_torch(args.segments)
    emit(figures, bars(figures), args.json)
    sys.exit(0 if all(bar.ok for bar in bars(figures)) else 1)


if __name__ == "__main__":
    main()
