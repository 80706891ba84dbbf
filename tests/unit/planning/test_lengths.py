"""Sentences too long for an engine are cut, those too short are joined."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.planning import Plan

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

Planner = Callable[..., Plan]
Said = Callable[..., list[str]]


def test_a_long_sentence_is_cut_at_clause_marks_first_and_then_at_words(plan: Planner) -> None:
    text = (
        "The quick brown fox; jumps over the lazy dog, and then: "
        "sleeps under the old tree until morning comes."
    )
    made = plan(text, engine_max_chars=40)
    assert [(piece.text, piece.pause_after_s) for piece in made.pieces] == [
        ("The quick brown fox;", 0.12),
        ("jumps over the lazy dog, and then:", 0.12),
        ("sleeps under the old", 0.0),
        ("tree until morning comes.", 1.5),
    ]


@pytest.mark.parametrize("mark", [",", ";", ":", "—", "--", "…", "..."])
def test_every_clause_mark_stays_with_what_it_ends(said: Said, mark: str) -> None:
    first, second = said(f"some words here{mark} and others there", engine_max_chars=30)
    assert (first, second) == (f"some words here{mark}", "and others there")


@pytest.mark.parametrize("mark", ["，", "；", "：", "、", "……", "——"])
def test_chinese_clause_marks_need_no_space(said: Said, mark: str) -> None:
    assert said(f"他们走了{mark}我们来了", engine_max_chars=8, languages=("zh",)) == [
        f"他们走了{mark}",
        "我们来了",
    ]


def test_no_tail_of_two_characters_is_left(said: Said) -> None:
    pieces = said("abcd " * 20 + "ab", engine_max_chars=100)
    assert [len(piece) for piece in pieces] == [49, 52]
    assert [len(piece) for piece in said("x" * 101, engine_max_chars=100)] == [51, 50]


def test_numbers_and_times_are_not_clauses(said: Said) -> None:
    pieces = said("at 12:30 some 1,000,000 people came to 3.14", engine_max_chars=30)
    assert {"12:30", "1,000,000", "3.14"} <= set(" ".join(pieces).split())


def test_a_word_is_cut_only_when_it_alone_is_too_long(said: Said) -> None:
    pieces = said("one " + "x" * 25 + " two three", engine_max_chars=10)
    assert "".join(pieces).replace(" ", "") == "one" + "x" * 25 + "twothree"
    assert pieces[0].startswith("one")
    assert pieces[-1].endswith("three")


@settings(deadline=None)
@given(
    marks=st.lists(st.sampled_from(["e\u0301", "o\u0302\u0323", "a", "ñ"]), min_size=5),
    limit=st.integers(3, 12),
)
def test_a_letter_keeps_its_accents(marks: list[str], limit: int, said: Said) -> None:
    pieces = said("".join(marks), engine_max_chars=limit)
    assert "".join(pieces) == "".join(marks)
    assert not any(piece[0] in "\u0301\u0302\u0323" for piece in pieces)


def test_hangul_syllables_written_in_letters_stay_whole(said: Said) -> None:
    syllable = "\u1112\u1161\u11ab"
    pieces = said(syllable * 10, engine_max_chars=7, languages=("ko",))
    assert set("".join(pieces).split(syllable)) == {""}
    assert all(len(piece) % 3 == 0 for piece in pieces)


def test_one_letter_with_more_accents_than_fit_is_said_once(plan: Planner) -> None:
    text = "a" + "\u0301" * 1_000 + " b"
    first, second = plan(text, engine_max_chars=50).pieces
    assert first.text == "a" + "\u0301" * 49
    assert second.text == "b"


def test_chinese_is_cut_beside_latin_words_not_in_them(said: Said) -> None:
    pieces = said("我们用internationalization来测试", engine_max_chars=21, languages=("zh", "en"))
    assert pieces == ["我们用", "internationalization", "来测试"]


def test_a_word_that_fits_is_not_cut_to_balance_the_pieces(said: Said) -> None:
    assert said("I am internationalization too", engine_max_chars=21) == [
        "I am",
        "internationalization",
        "too",
    ]


def test_long_chinese_without_any_mark_is_cut_evenly(said: Said) -> None:
    pieces = said("他，" + "好" * 100, engine_max_chars=60, languages=("zh",))
    assert [len(piece) for piece in pieces] == [51, 51]


def test_a_long_aside_in_brackets_is_divided_at_its_own_sentences(plan: Planner) -> None:
    text = "(Go away. I will not stay here with M. Brown any longer. Wait for me there.)"
    assert len(plan(text).pieces) == 1
    made = plan(text, engine_max_chars=60)
    assert [(piece.text, piece.pause_after_s) for piece in made.pieces] == [
        ("(Go away.", 0.3),
        ("I will not stay here with M. Brown any longer.", 0.3),
        ("Wait for me there.)", 1.5),
    ]


def test_short_sentences_are_joined_until_they_are_long_enough(said: Said) -> None:
    assert said("No! No! Yes. Well. Ok.", engine_min_chars=6) == ["No! No!", "Yes. Well. Ok."]
    assert said("Good morning to you. Yes.", engine_min_chars=6) == ["Good morning to you. Yes."]
    assert said("好。走吧。", engine_min_chars=4, languages=("zh",)) == ["好。走吧。"]


def test_short_sentences_stay_alone_where_joining_is_not_possible(said: Said) -> None:
    long = "x" * 18 + "."
    assert said(f"Ab. {long}", engine_min_chars=6, engine_max_chars=20) == ["Ab.", long]
    assert said("Ab.\n\nCd.", engine_min_chars=6) == ["Ab.", "Cd."]
    assert said("Ab. ☕ Cd.", engine_min_chars=6) == ["Ab.", "Cd."]
