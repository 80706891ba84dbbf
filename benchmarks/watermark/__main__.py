"""The watermark against everything the issue names: attacks, false alarms, copies, quality, cost.

Trials are numbered and made from their number alone, so that runs can be sharded, stopped and gone
on with: those in `--report FILE` are not done again, and those of `--with FILE` count too. Trials
of all cells take turns, so that a run that was stopped has tried everything alike. What was not
measured stands in the bars as null.

Run: python -m benchmarks.watermark --json - --report trials.jsonl [--shard 1/4] [--minutes 30]
"""

import os
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path

from benchmarks.report import emit, parser
from benchmarks.watermark import cells, costs, trials
from benchmarks.watermark.journal import Journal, Record
from benchmarks.watermark.quality import measure_quality
from benchmarks.watermark.speech import TEST, speech
from benchmarks.watermark.summary import bars, told
from shared.errors import SetupError
from worker.engines.base import Samples

Trial = tuple[str, int, Callable[[], Record]]


def main() -> None:
    """Try what is left to try, and report on all that was tried."""
    args = _options()
    journal = Journal(args.report, args.others)
    voices = _voices(args)
    try_all(_planned(voices, args), journal, minutes=args.minutes)
    measured = {} if args.trials_only else _costs(voices, quick=args.quick)
    quality = {} if args.trials_only else measure_quality(voices, 8 if args.quick else 40)
    done = journal.by_cell()
    found = bars(done, measured, quality)
    figures = {"voices": sorted(voices), **told(done), "costs": measured, "quality": quality}
    emit(figures, found, args.json)
    sys.exit(0 if all(bar.ok for bar in found) else 1)


def try_all(planned: Iterator[Trial], journal: Journal, *, minutes: float | None) -> None:
    """Do the trials that are not done, until the time is over."""
    ends_s = None if minutes is None else time.monotonic() + 60 * minutes
    for name, number, trial in planned:
        if ends_s is not None and time.monotonic() >= ends_s:
            return
        if not journal.has(name, number):
            journal.add(name, number, trial())


def _planned(voices: Mapping[str, Samples], args: Namespace) -> Iterator[Trial]:
    """The trials of this shard, all cells in turn."""
    shard, shards = args.shard
    kinds: list[tuple[str, int, Callable[[int], Record]]] = [
        *((c.name, c.trials, partial(trials.id_trial, voices, c)) for c in cells.CELLS),
        *(
            (f"high {attack}", cells.HIGH_TRIALS, partial(trials.high_trial, voices, attack))
            for attack in cells.HIGH_KEPT
        ),
        *(
            (f"high {attack}", 100, partial(trials.high_trial, voices, attack))
            for attack in cells.HIGH_LOST
        ),
        ("wrong key", cells.WRONG_KEY_TRIALS, partial(trials.wrong_key_trial, voices)),
        ("two copies", cells.COPIES_TRIALS, partial(trials.copies_trial, voices)),
        ("averaging", cells.AVERAGING_TRIALS, partial(trials.averaging_trial, voices)),
        ("unmarked", cells.UNMARKED_TRIALS, partial(trials.unmarked_trial, voices)),
    ]
    most = 2 if args.quick else max(count for _, count, _ in kinds)
    wanted = [kind for kind in kinds if not args.only or any(word in kind[0] for word in args.only)]
    turns = [
        [
            (name, number, partial(trial, number))
            for number in range(shard, min(count, most), shards)
        ]
        for name, count, trial in wanted
    ]
    for turn in zip_longest(*turns):
        yield from (trial for trial in turn if trial is not None)


def _voices(args: Namespace) -> dict[str, Samples]:
    found = {}
    for material in TEST:
        try:
            found[material.name] = speech(material, args.cache, args.kokoro)
        except SetupError as error:
            print(f"{material.name} is left out: {error}", file=sys.stderr)
    return found


def _costs(voices: Mapping[str, Samples], *, quick: bool) -> dict[str, object]:
    samples = next(iter(voices.values()))[: 120 * trials.RATE_HZ]
    return {
        "embedding_x_real_time": costs.embedding_x_real_time(samples),
        "detecting_s": costs.detecting_s(samples),
        "verifying_s_an_hour": costs.verifying_s_an_hour(samples, length_s=300 if quick else 3_600),
        "memory": costs.embedding_memory_mb(0.5 if quick else 24),
    }


def _options() -> Namespace:
    options = parser(__doc__)
    cache = Path(tempfile.gettempdir()) / "voxfarm-watermark-speech"
    options.add_argument(
        "--report", type=Path, metavar="FILE", help="where trials are written down"
    )
    options.add_argument(
        "--with",
        type=Path,
        dest="others",
        action="append",
        default=[],
        metavar="FILE",
        help="another shard's trials, to be counted too",
    )
    options.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="from 1/N on")
    options.add_argument("--minutes", type=float, help="stop trying after so long")
    options.add_argument(
        "--only",
        action="append",
        metavar="WORD",
        help="trials with this, or another such word, in their name",
    )
    options.add_argument("--trials-only", action="store_true", help="neither costs nor quality")
    options.add_argument("--quick", action="store_true", help="two trials of each kind")
    options.add_argument("--cache", type=Path, default=cache, help="rendered speech lies here")
    options.add_argument("--kokoro", metavar="FOLDER", help="Kokoro's files, where not installed")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return options.parse_args()


def _shard(text: str) -> tuple[int, int]:
    number, of = (int(part) for part in text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(text)
    return number - 1, of


if __name__ == "__main__":
    main()
