"""For any text, any limits and both newline modes: every word is said, or skipped by name."""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.jobs import JobSpec, NewlineMode, OnUnspeakable
from shared.planning import Plan, find_chapters, plan_text, uncovered
from shared.segments import SegmentKind

# Tokens that steer a random text into every branch: ends, quotes, wraps, lists, headings, marks.
TOKENS = (
    *"aZ9 .!?,;:—…-\"'()\n\t",
    *("。", "！", "？", "，", "；", "“", "”", "「", "」", "好", "世界", "３．１４", "ー", "か"),  # noqa: RUF001
    *("\r\n", "\r", "\x85", "\u2028", "\u2029", "\n\n", "\n  ", "\n\u3000\u3000", "\x0c", "\x00"),
    *("e\u0301", "\u0301", "\u200b", "\ufeff", "\u00ad", "\u202e", "\ufe0f", "1\ufe0f\u20e3"),
    *(
        "😀",
        "👨\u200d👩\u200d👧",
        "🇫🇷",
        "™",
        "€",
        "\ud800",
        "\ue000",
        "\uffff",
        "½",
        "①",
        "한",
        "Ж",
        "ن",
    ),
    *("Mr. ", "e.g. ", "No. ", "3.14", "some-\n", "word ", "Longword ", "He left. ", "他走了。"),
    *("\n\nCHAPTER 1\n\n", "\n\nPART ONE\n\n", "第一章 起\n\n", "\n- ", "\n1. ", "* * *", "x" * 40),
)
ANY_TEXT = st.one_of(
    st.text(),
    st.text(st.characters(exclude_categories=())),
    st.lists(st.sampled_from(TOKENS), max_size=60).map("".join),
    st.lists(st.sampled_from(TOKENS) | st.text(max_size=4), max_size=30).map("".join),
)
ANY_SPEC = st.fixed_dictionaries(
    {
        "engine_max_chars": st.integers(1, 60) | st.just(400),
        "engine_min_chars": st.integers(0, 30),
        "languages": st.sampled_from([("en",), ("zh",), ("zh", "en"), ("ja",), ("ru",), ("xx",)]),
        "language": st.sampled_from(["en", "zh", "zh-Hans", "de", "ja", "ru", "xx", ""]),
        "newlines": st.sampled_from(NewlineMode),
        "on_unspeakable": st.sampled_from(OnUnspeakable),
        "split_chapters": st.booleans(),
    }
)


def words(text: str) -> str:
    return "".join(one for one in text if one.isalnum())


@settings(max_examples=600, deadline=None)
@given(text=ANY_TEXT, changes=ANY_SPEC)
@example(text="", changes={})
@example(text="a" + "\u0301" * 50, changes={"engine_max_chars": 7})
@example(text="😀.", changes={})
@example(text="00000\r\u0300\u03000", changes={"engine_max_chars": 4, "engine_min_chars": 2})
@example(text=". 0", changes={"engine_max_chars": 1})
@example(text="x \u2029\u2029\n 😀 \n\n好。”", changes={"languages": ("zh",)})
def test_pieces_tile_the_text_and_say_every_word(
    text: str, changes: dict[str, object], spec_with: Callable[..., JobSpec]
) -> None:
    spec = spec_with(**changes)
    plan = plan_text(text, parts=None, spec=spec)

    assert "".join(text[piece.start : piece.end] for piece in plan.pieces) == text
    assert all(left.end == right.start for left, right in pairwise(plan.pieces))
    for piece in plan.pieces:
        assert piece.start < piece.end
        source = text[piece.start : piece.end]
        if piece.kind is SegmentKind.SPEECH:
            assert words(source) == words(piece.text) != ""
            assert len(piece.text) <= spec.engine_max_chars
            assert piece.text == " ".join(piece.text.split())
        else:
            assert piece.text == ""
            assert (piece.kind is SegmentKind.SKIP) == bool(piece.reason)
            assert piece.kind is SegmentKind.SKIP or not words(source)
    assert uncovered(text, plan.pieces) == []


@settings(max_examples=200, deadline=None)
@given(text=ANY_TEXT, changes=ANY_SPEC)
def test_parts_tile_the_text_and_pieces_stay_within_their_part(
    text: str, changes: dict[str, object], plan: Callable[..., Plan]
) -> None:
    made = plan(text, **changes)
    assert [part.index for part in made.parts] == list(range(len(made.parts)))
    assert "".join(text[part.start : part.end] for part in made.parts) == text
    for piece in made.pieces:
        part = made.parts[piece.part]
        assert part.start <= piece.start < piece.end <= part.end
    assert find_chapters(text) == find_chapters(text)


@settings(max_examples=100, deadline=None)
@given(text=ANY_TEXT, changes=ANY_SPEC)
def test_the_same_text_gives_the_same_plan(
    text: str, changes: dict[str, object], plan: Callable[..., Plan]
) -> None:
    assert plan(text, **changes) == plan(text, **changes)


@settings(max_examples=150, deadline=None)
@given(text=ANY_TEXT)
def test_no_symbol_or_invisible_character_reaches_an_engine(
    text: str, said: Callable[..., list[str]]
) -> None:
    unwanted = set("😀👨👩👧🇫🇷\u200d\u200b\ufeff\u00ad\u202e\ufe0f\u20e3\ud800\ue000\uffff\x00")
    assert not unwanted & set("".join(said(text)))
