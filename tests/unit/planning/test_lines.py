"""What a line end means: nothing, a space, a new sentence or a new paragraph."""

from collections.abc import Callable

import pytest

from shared.jobs import NewlineMode
from shared.planning import Plan
from shared.segments import SegmentKind

Planner = Callable[..., Plan]
Said = Callable[..., list[str]]
NEWLINES = ["\n", "\r\n", "\r", "\x85", "\u2028", "\x0b", "\x0c"]


@pytest.mark.parametrize("newline", NEWLINES)
def test_in_prose_a_line_end_is_a_space_and_a_blank_line_ends_a_paragraph(
    plan: Planner, newline: str
) -> None:
    made = plan(newline.join(["Hard wrapped", "prose here", "", " ", "next one"]))
    assert [(piece.text, piece.pause_after_s) for piece in made.pieces] == [
        ("Hard wrapped prose here", 0.7),
        ("next one", 1.5),
    ]


@pytest.mark.parametrize("newline", NEWLINES)
def test_in_lines_mode_every_line_stands_alone(plan: Planner, newline: str) -> None:
    text = newline.join(["Roses are red", "Violets", "", "Next stanza"])
    made = plan(text, newlines=NewlineMode.LINES, engine_min_chars=20)
    assert [(piece.text, piece.pause_after_s) for piece in made.pieces] == [
        ("Roses are red", 0.3),
        ("Violets", 0.7),
        ("Next stanza", 1.5),
    ]


def test_a_paragraph_separator_ends_a_paragraph_by_itself(plan: Planner) -> None:
    first, second = plan("one\u2029two").pieces
    assert (first.pause_after_s, second.pause_after_s) == (0.7, 1.5)


def test_a_hyphen_at_a_line_end_is_kept_and_joined_without_a_space(said: Said) -> None:
    assert said("a well-\nknown man") == ["a well-known man"]
    assert said("a well-  \r\n  known man") == ["a well-known man"]
    assert said("he went --\nand came") == ["he went -- and came"]
    assert said("he went -\nand came") == ["he went - and came"]


def test_hard_wrapped_chinese_is_joined_without_a_space(said: Said) -> None:
    assert said("他们走\n了很久。", languages=("zh",)) == ["他们走了很久。"]
    assert said("他用\nPython。", languages=("zh", "en")) == ["他用 Python。"]


def test_list_items_stand_alone_and_wrapped_items_stay_whole(said: Said) -> None:
    assert said("Buy:\n- milk and\n  honey\n- eggs") == ["Buy:", "- milk and honey", "- eggs"]
    assert said("1. One\n2. Two\n3) Three") == ["1. One", "2. Two", "3) Three"]
    assert said("They were on page\n5. Then they left.") == [
        "They were on page 5.",
        "Then they left.",
    ]


def test_indented_verse_keeps_its_lines(said: Said) -> None:
    text = (
        "He read:\n\n    Tyger Tyger, burning bright,\n    In the forests of the night;\n\nAnd on."
    )
    assert said(text) == [
        "He read:",
        "Tyger Tyger, burning bright,",
        "In the forests of the night;",
        "And on.",
    ]


def test_an_indented_block_of_prose_is_still_prose(said: Said) -> None:
    assert said("    A quotation set in\n    from the margin.") == [
        "A quotation set in from the margin."
    ]


def test_an_indented_first_line_begins_a_paragraph(plan: Planner) -> None:
    made = plan("  It ended.\n  “Really?”\nhe asked.\n  Yes.")
    assert [piece.text for piece in made.pieces] == ["It ended.", "“Really?” he asked.", "Yes."]
    made = plan("It ended\nthere.\n    Then it began.")
    assert [(piece.text, piece.pause_after_s) for piece in made.pieces] == [
        ("It ended there.", 0.7),
        ("Then it began.", 1.5),
    ]
    made = plan("　　他走了。\n　　她来了。", languages=("zh",))
    assert [piece.pause_after_s for piece in made.pieces] == [0.7, 1.5]


def test_a_heading_does_not_run_into_the_text_below_it(said: Said) -> None:
    assert said("CHAPTER 1\nIt was dark.") == ["CHAPTER 1", "It was dark."]
    assert said("CHAPTER 1 A LONG\nTITLE") == ["CHAPTER 1 A LONG TITLE"]
    assert said("CHAPTER 1 A\nCHAPTER 2 B\nCHAPTER 3 C") == [
        "CHAPTER 1 A",
        "CHAPTER 2 B",
        "CHAPTER 3 C",
    ]
    assert said("第一章 山\n从前有山。", languages=("zh",)) == ["第一章 山", "从前有山。"]


def test_a_line_of_marks_is_silence(plan: Planner) -> None:
    made = plan("One.\n\n* * *\n\nTwo.")
    assert [(piece.kind, piece.pause_after_s) for piece in made.pieces] == [
        (SegmentKind.SPEECH, 0.7),
        (SegmentKind.SILENCE, 0.7),
        (SegmentKind.SPEECH, 1.5),
    ]


def test_blank_lines_belong_to_the_piece_before_them(plan: Planner) -> None:
    text = "\n\n\ufeff\n One. \n\n\u200b\n\n Two.\n\n"
    first, second = plan(text).pieces
    assert text[: first.end].strip("\n\ufeff \u200b") == "One."
    assert (first.start, second.end) == (0, len(text))


def test_pauses_are_those_of_the_job(plan: Planner) -> None:
    pauses = {"clause_s": 0.0, "sentence_s": 1.0, "paragraph_s": 2.0, "chapter_s": 3.0}
    made = plan("One is. Two are.\n\nThree.", pauses=pauses)
    assert [piece.pause_after_s for piece in made.pieces] == [1.0, 2.0, 3.0]
