"""Chapters are found by their headings, and a table of contents is not taken for them."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from shared.errors import UsageError
from shared.jobs import JobSpec
from shared.planning import Part, Plan, find_chapters, plan_text

# ruff: noqa: RUF001 -- full-width marks are meant here

# The opening of a novel of 1871 in the form in which transcribers set such books.
NOVEL = """A JOURNEY TO THE CENTRE OF THE EARTH

By Jules Verne




TABLE OF CONTENTS

CHAPTER 1 MY UNCLE MAKES A GREAT DISCOVERY

CHAPTER 2 THE MYSTERIOUS PARCHMENT

CHAPTER 3 AN ASTOUNDING
DISCOVERY




CHAPTER 1

MY UNCLE MAKES A GREAT DISCOVERY


Looking back to all that has occurred to me since that eventful day, I
am scarcely able to believe in the reality of my adventures.

"Harry!" he cried, in a frantic tone, "are you coming up?"



CHAPTER 2

THE MYSTERIOUS PARCHMENT


"I declare," cried my uncle, striking the table fiercely with his fist,
"I declare to you it is Runic."



CHAPTER 3

AN ASTOUNDING
DISCOVERY


"What is the matter?" cried the cook, entering the room; "when will
master have his dinner?"

"Never!"
"""


def titles(text: str) -> list[str]:
    return [part.title for part in find_chapters(text)]


def test_a_novel_has_front_matter_and_its_chapters() -> None:
    parts = find_chapters(NOVEL)
    assert [part.title for part in parts] == [
        "Front matter",
        "CHAPTER 1 MY UNCLE MAKES A GREAT DISCOVERY",
        "CHAPTER 2 THE MYSTERIOUS PARCHMENT",
        "CHAPTER 3 AN ASTOUNDING DISCOVERY",
    ]
    assert "TABLE OF CONTENTS" in NOVEL[parts[0].start : parts[0].end]
    assert NOVEL[parts[1].start :].startswith("CHAPTER 1\n\nMY UNCLE")
    assert NOVEL[parts[3].start :].endswith('"Never!"\n')


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\u2028"])
def test_other_line_ends_give_the_same_chapters(newline: str) -> None:
    assert titles("\ufeff" + NOVEL.replace("\n", newline)) == titles(NOVEL)


@pytest.mark.parametrize(
    "heading",
    [
        "CHAPTER 12",
        "CHAPTER 12.",
        "CHAPTER 12 THE END",
        "CHAPTER XII. In which nothing happens",
        "Chapter XII: The end of it",
        "Chapter Twenty-One",
        "Chapter the First",
        "CHAPTER ONE—LOST",
        "PART ONE",
        "BOOK II The Return",
        "PROLOGUE",
        "Epilogue",
        "EPILOGUE: Later",
        "第十二章 山中",
        "第12章",
        "第十二回：山中何事",
        "第一章山中何事",
        "楔子",
        "后记",
    ],
)
def test_headings_are_recognised(heading: str) -> None:
    assert titles(f"{heading}\n\nIt was dark, 天黑了。\n") == [heading]


@pytest.mark.parametrize(
    "prose",
    [
        "Chapter 12 of this book tells how he came home.",
        "Chapter 5 was the best.",
        "chapter 5",
        "Part one was easy.",
        "Introduction to the theory of numbers",
        "Chapters 1 and 2",
        "PARTING WORDS",
        "第一章他走了很远，又回来了。",
        "第一节课开始了。",
        "序列很长。",
    ],
)
def test_prose_that_begins_like_a_heading_is_prose(prose: str) -> None:
    assert titles(f"{prose}\n\nIt was dark. 天黑了。\n") == [""]


def test_a_heading_has_to_start_a_paragraph() -> None:
    assert titles("He opened the book at\nCHAPTER 12\nand read on. It was dark.") == [""]


def test_a_title_may_wrap_or_stand_on_the_next_line() -> None:
    body = "\n\nIt was a dark night. The rain fell.\n"
    assert titles("CHAPTER I. In which Phileas Fogg accepts\nhis new master" + body) == [
        "CHAPTER I. In which Phileas Fogg accepts his new master"
    ]
    assert titles("CHAPTER I\nThe Long Road" + body) == ["CHAPTER I The Long Road"]
    assert titles("CHAPTER I\n\nThe Long Road" + body) == ["CHAPTER I The Long Road"]
    assert titles("CHAPTER I\nIt was a dark night. The rain fell.\n") == ["CHAPTER I"]
    assert titles("CHAPTER I. THE BALL\nIt was a dark\nnight.\n") == ["CHAPTER I. THE BALL"]
    assert titles("第一章\n山中何事\n\n天黑了。下雨了。\n") == ["第一章 山中何事"]


def test_a_part_opens_with_its_first_chapter() -> None:
    body = "\n\nIt was dark. It rained.\n\n"
    text = f"PART ONE\n\nCHAPTER 1{body}CHAPTER 2{body}PART TWO\n\nCHAPTER 3{body}"
    assert titles(text) == ["PART ONE, CHAPTER 1", "CHAPTER 2", "PART TWO, CHAPTER 3"]


def test_contents_that_list_parts_too_are_not_taken_for_them() -> None:
    body = "\n\nIt was dark. It rained.\n\n"
    text = f"PART ONE\n\nCHAPTER 1\n\nPART TWO\n\nCHAPTER 2\n\n\nPART ONE\n\nCHAPTER 1{body}"
    assert titles(text) == ["Front matter", "PART ONE, CHAPTER 1"]


def test_contents_with_descriptions_are_contents() -> None:
    entries = "CHAPTER I\n\nHow he went.\n\nCHAPTER II\n\nHow he came back.\n\n"
    long = "It was a dark night and the rain fell on the roofs. " * 20
    text = f"{entries}\nCHAPTER I\n\n{long}\n\nCHAPTER II\n\n{long}"
    assert titles(text) == ["Front matter", "CHAPTER I", "CHAPTER II"]


def test_contents_in_one_block_of_lines_are_contents() -> None:
    text = "CHAPTER 1 A\nCHAPTER 2 B\n\nCHAPTER 1 A\n\nIt was dark.\n\nCHAPTER 2 B\n\nIt rained."
    assert titles(text) == ["Front matter", "CHAPTER 1 A", "CHAPTER 2 B"]


def test_chapters_that_are_counted_anew_in_every_book_are_all_kept() -> None:
    long = "\n\n" + "It was a dark night and the rain fell on the roofs. " * 20 + "\n\n"
    text = f"BOOK I\n\nCHAPTER 1{long}CHAPTER 2{long}BOOK II\n\nCHAPTER 1{long}CHAPTER 2{long}"
    assert titles(text) == ["BOOK I, CHAPTER 1", "CHAPTER 2", "BOOK II, CHAPTER 1", "CHAPTER 2"]


def test_a_text_without_headings_is_one_part() -> None:
    assert find_chapters("It was dark.") == (Part(0, "", 0, 12),)
    assert find_chapters("") == (Part(0, "", 0, 0),)


def test_every_part_ends_with_the_pause_of_a_chapter(plan: Callable[..., Plan]) -> None:
    made = plan(NOVEL, split_chapters=True)
    lasts = [left for left, right in pairwise(made.pieces) if left.part != right.part]
    assert len(lasts) == 3
    assert {piece.pause_after_s for piece in (*lasts, made.pieces[-1])} == {1.5}


def test_chapters_given_by_the_client_win(spec_with: Callable[..., JobSpec]) -> None:
    parts = (Part(0, "One", 0, 4), Part(1, "None", 4, 4), Part(2, "Two", 4, 8))
    made = plan_text("A b.C d.", parts=parts, spec=spec_with(split_chapters=True))
    assert made.parts == parts
    assert [(piece.text, piece.part) for piece in made.pieces] == [("A b.", 0), ("C d.", 2)]


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (Part(0, "", 0, 3),),
        (Part(0, "", 1, 8),),
        (Part(0, "", 0, 4), Part(1, "", 5, 8)),
        (Part(0, "", 0, 4), Part(0, "", 4, 8)),
        (Part(0, "", 0, 6), Part(1, "", 6, 4), Part(2, "", 4, 8)),
    ],
)
def test_parts_that_do_not_tile_the_text_are_refused(
    spec_with: Callable[..., JobSpec], parts: tuple[Part, ...]
) -> None:
    with pytest.raises(UsageError) as refused:
        plan_text("A b.C d.", parts=parts, spec=spec_with())
    assert refused.value.code == "bad-parts"
