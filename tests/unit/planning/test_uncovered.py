"""The judge of plans finds what is missing, doubled, unsaid or changed."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shared.planning import Piece, Uncovered, uncovered
from shared.segments import SegmentKind

TEXT = "One two. Three. 好。"
GOOD = [
    Piece(0, 9, SegmentKind.SPEECH, "One two.", 0.3, 0),
    Piece(9, 16, SegmentKind.SPEECH, "Three.", 0.3, 0),
    Piece(16, 18, SegmentKind.SKIP, "", 1.5, 0, "unspeakable: Han"),
]


def test_a_whole_plan_has_nothing_uncovered() -> None:
    assert uncovered(TEXT, GOOD) == []
    assert uncovered("", []) == []


def test_a_missing_piece_is_a_gap_wherever_it_is() -> None:
    assert uncovered(TEXT, GOOD[1:]) == [Uncovered(0, 9, "gap")]
    assert uncovered(TEXT, [GOOD[0], GOOD[2]]) == [Uncovered(9, 16, "gap")]
    assert uncovered(TEXT, GOOD[:2]) == [Uncovered(16, 18, "gap")]
    assert uncovered(TEXT, []) == [Uncovered(0, 18, "gap")]


def test_a_doubled_piece_and_one_beyond_the_end_overlap() -> None:
    assert uncovered(TEXT, [GOOD[0], GOOD[0], *GOOD[1:]]) == [Uncovered(0, 9, "overlap")]
    assert uncovered(TEXT[:-1], GOOD) == [Uncovered(17, 18, "overlap")]


def test_exchanged_pieces_are_not_in_order() -> None:
    problems = {one.problem for one in uncovered(TEXT, [GOOD[1], GOOD[0], GOOD[2]])}
    assert problems == {"gap", "overlap"}


def test_a_word_that_is_not_said_is_named() -> None:
    silent = replace(GOOD[1], kind=SegmentKind.SILENCE, text="")
    assert uncovered(TEXT, [GOOD[0], silent, GOOD[2]]) == [Uncovered(9, 16, "unspoken")]
    shorter = replace(GOOD[0], text="One.")
    assert uncovered(TEXT, [shorter, *GOOD[1:]]) == [Uncovered(0, 9, "unspoken")]


def test_words_that_are_not_in_the_text_are_untrue() -> None:
    changed = replace(GOOD[0], text="Two one.")
    assert uncovered(TEXT, [changed, *GOOD[1:]]) == [Uncovered(0, 9, "untrue")]


@given(drop=st.integers(0, 2), cut=st.integers(1, 5))
def test_no_shortened_plan_passes(drop: int, cut: int) -> None:
    pieces = list(GOOD)
    pieces[drop] = replace(pieces[drop], end=max(pieces[drop].start, pieces[drop].end - cut))
    assert uncovered(TEXT, pieces)
