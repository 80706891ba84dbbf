"""How fast a text is planned, and that no text makes the time grow faster than its length.

Run: python -m benchmarks.planning --json -
"""

import sys
import time
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path

from benchmarks.report import at_most, emit, parser
from shared.jobs import AudioFormat, JobSpec, NewlineMode, OnUnspeakable, Pauses
from shared.planning import plan_text, uncovered
from shared.tiers import Tier

# ruff: noqa: RUF001 -- full-width marks are meant here

CHARS = 1_000_000
LIMIT_S = 1.0
# Four times the text may take somewhat longer than four times as long: its pieces leave the caches.
# Time that grows with the square of the length would make it sixteen.
GROWTH, MOST_GROWTH = 4, 8.0
ENGLISH = Path(__file__).parent / "texts" / "journey-4-chapters.txt"
# The opening of Journey to the West (1592).
CHINESE = """第一回 灵根育孕源流出 心性修持大道生

诗曰：混沌未分天地乱，茫茫渺渺无人见。自从盘古破鸿蒙，开辟从兹清浊辨。覆载群生仰至仁，发明万物皆成善。欲知造化会元功，须看西游释厄传。

盖闻天地之数，有十二万九千六百岁为一元。将一元分为十二会，乃子、丑、寅、卯、辰、巳、午、未、申、酉、戌、亥之十二支也。每会该一万八百岁。且就一日而论：子时得阳气，而丑则鸡鸣；寅不通光，而卯则日出；辰时食后，而巳则挨排；日午天中，而未则西蹉；申时晡而日落酉；戌黄昏而人定亥。

"""
MIXED = "他用 iPhone 打电话给 Mr. Smith。He said: “No, not for 3.14 dollars!” Then he left 😀。\n\n"
HOSTILE = {
    "no_spaces": "a",
    "short_sentences": "a. ",
    "newlines": "\n",
    "quotes": '"',
    "open_quotes": "“",
    "combining_marks": "\u0301",
    "dots": ".",
    "blanks": " ",
    "zero_width": "\u200b",
    "commas": "a, ",
    "abbreviations": "Mr. ",
    "one_letter_paragraphs": "a\n\n",
    "list_items": "- a\n",
    "headings": "CHAPTER 1\n\n",
    "tags": "<i>a</i>",
    "emoji": "a😀",
    "foreign": "Ж, ",
    "chinese_stops": "。",
    "chinese_quotes": '好。"',
}


def spec(*languages: str) -> JobSpec:
    """A job for an engine of these languages, looking for chapters."""
    return JobSpec(
        engine="benchmark",
        engine_version="1",
        engine_backend="cpu",
        engine_rate_hz=24_000,
        engine_max_chars=300,
        engine_min_chars=10,
        languages=languages,
        voice="any",
        language=languages[0],
        tier=Tier.BULK,
        format=AudioFormat.FLAC,
        sample_rate_hz=24_000,
        speed=1.0,
        seed=0,
        pauses=Pauses(),
        newlines=NewlineMode.PROSE,
        on_unspeakable=OnUnspeakable.SKIP,
        split_chapters=True,
    )


def repeated(text: str, chars: int) -> str:
    """A text over and over, up to so many characters."""
    return "".join(islice(cycle(text), chars))


@dataclass(frozen=True, slots=True)
class Taken:
    """The shortest times of several runs, in seconds, and the number of pieces.

    Planning is one thread that waits for nothing, so CPU time is its time on a core of its own,
    whatever else the machine does; the bars are about that.
    """

    cpu_s: float
    wall_s: float
    pieces: int


def measured(text: str, job: JobSpec, runs: int) -> Taken:
    """Plan a text several times; raises when the plan does not cover it."""
    cpu_s, wall_s = [], []
    for _ in range(runs):
        began = time.process_time(), time.perf_counter()
        plan = plan_text(text, parts=None, spec=job)
        cpu_s.append(time.process_time() - began[0])
        wall_s.append(time.perf_counter() - began[1])
    if problems := uncovered(text, plan.pieces):
        raise RuntimeError(f"the plan does not cover the text: {problems[:3]}")
    return Taken(round(min(cpu_s), 4), round(min(wall_s), 4), len(plan.pieces))


def main() -> None:
    """Measure and report."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=3)
    args = options.parse_args()
    figures: dict[str, object] = {"chars": CHARS}
    bars = []
    for name, text, job in (
        ("english", ENGLISH.read_text(encoding="utf-8"), spec("en")),
        ("chinese", CHINESE, spec("zh")),
        ("mixed", MIXED, spec("zh", "en")),
    ):
        taken = measured(repeated(text, CHARS), job, args.runs)
        figures[name] = asdict(taken)
        bars.append(at_most(f"{name}_cpu_s", taken.cpu_s, LIMIT_S))
    hostile: dict[str, object] = {}
    worst = 0.0
    for name, text in HOSTILE.items():
        shorter = measured(repeated(text, CHARS // GROWTH), spec("en"), args.runs)
        taken = measured(repeated(text, CHARS), spec("en"), args.runs)
        hostile[name] = asdict(taken)
        worst = max(worst, taken.cpu_s / shorter.cpu_s)
    figures |= {"hostile": hostile, "hostile_growth_of": GROWTH}
    bars.append(at_most("hostile_growth", round(worst, 2), MOST_GROWTH))
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
