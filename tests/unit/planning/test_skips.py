"""What no engine of the job can say is left out, and named."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.jobs import OnUnspeakable
from shared.planning import Plan, Unspeakable, first_unspeakable, uncovered
from shared.segments import SegmentKind

# ruff: noqa: RUF001 -- full-width marks are meant here

Planner = Callable[..., Plan]
Said = Callable[..., list[str]]


def outline(plan: Plan) -> list[str]:
    return [piece.reason or piece.text or "-" for piece in plan.pieces]


def test_foreign_letters_are_skipped_and_what_surrounds_them_is_said(plan: Planner) -> None:
    made = plan("He said 你好，世界 to me, and Привет.")
    assert outline(made) == [
        "He said",
        "unspeakable: Han",
        "to me, and.",
        "unspeakable: Cyrillic",
    ]


def test_a_sentence_that_ends_in_a_skip_keeps_its_end_mark_and_its_pause(plan: Planner) -> None:
    spoken, skipped, after = plan("I like it ☕. Good.").pieces
    assert (spoken.text, spoken.pause_after_s) == ("I like it.", 0.0)
    assert (skipped.reason, skipped.pause_after_s) == ("symbol: HOT BEVERAGE", 0.3)
    assert after.text == "Good."


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        ("A b. 你好！ Bye.", ("en",), ["A b.", "Bye."]),  # it ended before the skip
        ("Is it 你好？", ("en",), ["Is it?"]),
        ("Is it سلام؟", ("en",), ["Is it?"]),
        ("He said, 你好。", ("en",), ["He said."]),
        ('"Come here." 你好！', ("en",), ['"Come here."']),
        ("Wait… 你好！", ("en",), ["Wait…"]),
        ("I like it ☕ 你好!", ("en",), ["I like it!"]),  # over two skips
        ("他来了 ☕.", ("zh",), ["他来了。"]),
        ("他用 iPhone?", ("zh",), ["他用？"]),
        ("他来了！☕.", ("zh",), ["他来了！"]),
        ("他说 OK ☕。", ("zh", "en"), ["他说 OK."]),
        ("Он пришёл ☕！", ("ru",), ["Он пришёл!"]),
    ],
)
def test_a_kept_end_mark_is_the_only_one_and_of_the_script_that_is_spoken(
    said: Said, text: str, languages: tuple[str, ...], expected: list[str]
) -> None:
    assert said(text, languages=languages) == expected


ASCII_ENDS, WIDE_ENDS = set(".!?"), set("。！？")


@given(
    runs=st.lists(
        st.sampled_from(["word", "b.", "e.g.", "Mr.", "it,", "Oh!", "Why?", "☕", "→"])
        | st.sampled_from(["你好", "你好！", "世界。", "，世界", "何？", "Привет.", "سلام؟"]),
        max_size=12,
    ),
    end=st.sampled_from(["", *".!?。！？", "?!", "！！"]),
    limit=st.integers(1, 40),
)
def test_no_skip_brings_a_second_or_a_foreign_end_mark(
    runs: list[str], end: str, limit: int, said: Said
) -> None:
    text = " ".join([*runs, "☕"]) + end  # a mark that follows a skip, never a word of ours
    for piece in said(text, languages=("en",), engine_max_chars=limit):
        marks = piece[len(piece.rstrip("".join(ASCII_ENDS | WIDE_ENDS))) :]
        assert not (set(marks) & ASCII_ENDS and set(marks) & WIDE_ENDS)
        assert not re.search(r"[.!?,][！。？]|[,，][.!?]", piece)


def test_skipped_paragraphs_leave_no_hole(plan: Planner) -> None:
    made = plan("One.\n\n你好。世界。\n\n你好。\n\nTwo.")
    assert sum(piece.pause_after_s for piece in made.pieces[:-1]) == pytest.approx(0.7)


def test_a_run_of_symbols_is_one_piece_that_names_the_first_few(plan: Planner) -> None:
    made = plan("Party 🎉 🎈🎁 ✨🎂 now")
    assert outline(made) == [
        "Party",
        "symbol: PARTY POPPER, BALLOON, WRAPPED PRESENT and 2 more",
        "now",
    ]


@pytest.mark.parametrize(
    "symbol",
    ["👨\u200d👩\u200d👧", "🇫🇷", "❤\ufe0f", "👍🏽", "→", "█", "�", "\ue000", "⠿"],
)
def test_symbols_never_reach_the_engine(plan: Planner, symbol: str) -> None:
    before, skipped, after = plan(f"one {symbol} two").pieces
    assert (before.text, after.text) == ("one", "two")
    assert skipped.kind is SegmentKind.SKIP
    assert skipped.reason.startswith("symbol: ")


@pytest.mark.parametrize("sign", [*"$€£¥%&+=<>×÷±−≤≠∞√@#*/^°§©™№‰", "½", "²", "①", "Ⅻ", "Å", "µ"])
def test_signs_with_a_reading_are_said(said: Said, sign: str) -> None:
    assert said(f"one {sign} two") == [f"one {sign} two"]


def test_invisible_characters_are_neither_said_nor_skipped(plan: Planner) -> None:
    made = plan("\ufeffZero\u200bwidth, co\u00adoperate \u202eand\u202c bidi\x07 1\ufe0f\u20e3.")
    assert outline(made) == ["Zerowidth, cooperate and bidi 1."]


def test_a_chinese_engine_skips_latin_unless_it_reads_english_too(plan: Planner) -> None:
    text = "他用iPhone打电话。"
    assert outline(plan(text, languages=("zh",)))[1] == "unspeakable: Latin"
    assert outline(plan(text, languages=("zh", "en"))) == [text]


def test_when_the_job_refuses_foreign_text_nothing_is_skipped_behind_its_back(said: Said) -> None:
    assert said("He said 你好.", on_unspeakable=OnUnspeakable.REFUSE) == ["He said 你好."]


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        ("Hello, wörld! Ñandú ﬁ １２ 𝐀 Ⅷ", ["en"], None),
        ("Hello 世界", ["en"], Unspeakable(6, "世", "Han")),
        ("Hello 世界", ["en", "zh-Hans"], None),
        ("α", ["en"], Unspeakable(0, "α", "Greek")),
        ("x ٣", ["en"], Unspeakable(2, "٣", "Arabic")),
        ("ㄅ〇々", ["zh"], None),
        ("かな カナ ｶ 漢ー", ["ja"], None),
        ("㊀", ["en"], Unspeakable(0, "㊀", "Han")),
        ("word", ["zh"], Unspeakable(0, "w", "Latin")),
        ("Hello", ["some-unknown"], None),
        ("😀 → ★ 5%", ["en"], None),
        ("\U00017000", ["en"], Unspeakable(0, "\U00017000", "Unknown")),
    ],
)
def test_the_first_unspeakable_character_is_found(
    text: str, languages: list[str], expected: Unspeakable | None
) -> None:
    assert first_unspeakable(text, languages) == expected


def test_paired_inline_tags_are_not_read_out(plan: Planner) -> None:
    text = "The <i>Nautilus</i>. It is <B>big</B>, <em>i.e.</em> large."
    made = plan(text)
    assert outline(made) == ["The Nautilus.", "It is big, i.e. large."]
    assert uncovered(text, made.pieces) == []


def test_a_lone_tag_is_text(said: Said) -> None:
    assert said("if a <b> c then") == ["if a <b> c then"]
