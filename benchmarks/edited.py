"""What an edited book costs: the changed sentences, their chapters, and not much besides.

A book of 5,000 sentences is rendered once. Then, again and again: a job that renders nothing but
encodes every chapter (its pauses differ by a hair) shows what assembly alone takes, and an edition
with three new sentences shows what an edit takes. A text in one piece, where an edit has the whole
file encoded again, is judged likewise; the edit's wall over its own assembly (`ratio_own`) is
printed beside it, since on a busy machine two assemblies of the same text differ.

Run: python -m benchmarks.edited --json - (--quick: 500 sentences, one run)
"""

import sqlite3
import statistics
import sys
from itertools import count

import httpx

from benchmarks.farm import job_seconds, render
from benchmarks.farm_process import Watched, running_farm
from benchmarks.report import at_most, emit, parser

CHAPTERS = 20
EDITS = 3
WALL_TARGET = 1.15
_ROUND = count(1)


def book(sentences: int, *, edition: int = 0) -> list[str]:
    """The text of each chapter; an edition has three sentences of its own, in three chapters."""
    per_chapter = sentences // CHAPTERS
    changed = {(1, 7), (8, per_chapter // 2), (15, per_chapter - 1)} if edition else set()
    return [
        "\n\n".join(
            f"Sentence {n} of edition {edition} is another one now."
            if (c, n) in changed
            else f"This is sentence number {n} of chapter {c}, as it always was."
            for n in range(per_chapter)
        )
        for c in range(CHAPTERS)
    ]


def body(chapters: list[str], *, plain: bool) -> dict[str, object]:
    """The request for a book, as chapters or as one text."""
    wishes: dict[str, object] = {"engine": "tone", "format": "mp3", "reuse": True}
    if plain:
        return wishes | {"text": "\n\n".join(chapters)}
    return wishes | {"chapters": [{"title": "", "text": text} for text in chapters]}


def assembly_alone(farm: Watched, sentences: int, *, plain: bool) -> dict[str, float]:
    """A job that renders nothing and encodes everything; seconds from the last segment's being in.

    A pause that differs by a microsecond has every file made anew.
    """
    wishes = body(book(sentences), plain=plain)
    wishes["pauses"] = {"chapter_s": 1.5 + next(_ROUND) * 1e-6}
    job = render(farm, wishes)
    found = look(farm, str(job["id"]))
    expected = {"claims": 0, "segments_reused": sentences, "parts_reused": 0}
    assert expected.items() <= found.items(), found
    return found


def edited(farm: Watched, sentences: int, *, plain: bool) -> dict[str, float]:
    """An edition that nobody has heard yet."""
    job = render(farm, body(book(sentences, edition=next(_ROUND)), plain=plain))
    return look(farm, str(job["id"]))


def look(farm: Watched, job_id: str) -> dict[str, float]:
    """A job's claims, what it reused, and its times in seconds, from API and ledger."""
    job = httpx.get(f"{farm.url}/v1/jobs/{job_id}", timeout=60).raise_for_status().json()
    with sqlite3.connect(farm.data_dir / "voxfarm.db") as ledger:
        claims, token = ledger.execute(
            "SELECT sum(attempt), sum(token) FROM segment WHERE job_id = ?", (job_id,)
        ).fetchone()
        planned_s, assembly_s = ledger.execute(
            "SELECT planned_at - created_at, ended_at - rendered_at FROM job WHERE id = ?",
            (job_id,),
        ).fetchone()
    return {
        "claims": max(claims, token),
        "segments_reused": job["reuse"]["segments"],
        "parts_reused": job["reuse"]["parts"],
        "parts": job["progress"]["parts_total"],
        "wall_s": round(job_seconds(job), 3),
        "planned_s": round(planned_s, 3),
        "assembly_s": round(assembly_s, 3),
    }


def measure(sentences: int, runs: int, *, plain: bool) -> dict[str, object]:
    """One farm, one book: rendered once, then assembled and edited in turns."""
    with running_farm(engine="tone", nodes=1) as farm:
        first = render(farm, body(book(sentences), plain=plain))
        whole = look(farm, str(first["id"]))
        alone, edits = [], []
        for _ in range(runs):
            alone.append(assembly_alone(farm, sentences, plain=plain))
            edits.append(edited(farm, sentences, plain=plain))
    alone_s = statistics.median(run["assembly_s"] for run in alone)
    edited_s = statistics.median(run["wall_s"] for run in edits)
    return {
        "whole": whole,
        "assembly_alone": alone,
        "edited": edits,
        "assembly_alone_s": alone_s,
        "edited_s": edited_s,
        "ratio": round(edited_s / alone_s, 3),
        "ratio_own": round(
            statistics.median(run["wall_s"] / run["assembly_s"] for run in edits), 3
        ),
        "claims": max(run["claims"] for run in edits),
        "chapters_encoded": max(run["parts"] - run["parts_reused"] for run in edits),
    }


def main() -> None:
    """Measure and report."""
    options = parser(__doc__)
    options.add_argument("--sentences", type=int, default=5_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--quick", action="store_true", help="500 sentences, one run")
    args = options.parse_args()
    sentences, runs = (500, 1) if args.quick else (args.sentences, args.runs)
    chaptered = measure(sentences, runs, plain=False)
    plain = measure(sentences, runs, plain=True)
    bars = [
        at_most("claims of an edit", float(str(chaptered["claims"])), EDITS),
        at_most("chapters encoded again", float(str(chaptered["chapters_encoded"])), EDITS),
        at_most("wall of an edit / assembly alone", float(str(chaptered["ratio"])), WALL_TARGET),
        at_most("claims of an edit, one text", float(str(plain["claims"])), EDITS),
        at_most("wall / assembly alone, one text", float(str(plain["ratio"])), WALL_TARGET),
    ]
    emit({"sentences": sentences, "chapters": chaptered, "one_text": plain}, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
