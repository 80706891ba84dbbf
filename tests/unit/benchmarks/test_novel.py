"""The novel benchmark counts as heard only what is spoken, or silent where nothing was to say."""

from typing import Any

from benchmarks.novel import missing_characters
from benchmarks.planned import spec_for
from shared.planning import Plan, plan_text
from shared.segments import SegmentKind

TEXT = "One two. ☕ Three.\n\n* * *\n\nFour."


def planned(text: str) -> Plan:
    return plan_text(text, parts=None, spec=spec_for("tone"))


def manifest(plan: Plan) -> dict[str, Any]:
    """What a job of this plan delivers when all goes well: every row is done, skips included."""
    return {
        "segments": [
            {"start": piece.start, "end": piece.end, "kind": piece.kind.value, "state": "done"}
            for piece in plan.pieces
        ]
    }


def test_a_skip_is_not_heard_though_it_is_done() -> None:
    made = planned(TEXT)
    [skip] = [piece for piece in made.pieces if piece.kind is SegmentKind.SKIP]
    assert missing_characters(TEXT, manifest(made), made) == skip.end - skip.start > 0


def test_a_text_without_skips_is_heard_whole() -> None:
    text = TEXT.replace("☕ ", "")
    made = planned(text)
    assert {piece.kind for piece in made.pieces} == {SegmentKind.SPEECH, SegmentKind.SILENCE}
    assert missing_characters(text, manifest(made), made) == 0


def test_gaps_and_rows_that_are_not_there_are_missing() -> None:
    text = "One two. Three. Four."
    made = planned(text)
    gap = manifest(made)
    gap["segments"][1]["state"] = "quarantined"
    assert missing_characters(text, gap, made) == made.pieces[1].end - made.pieces[1].start
    hole = manifest(made)
    del hole["segments"][1]
    assert missing_characters(text, hole, made) >= len(text)
