"""The judge of Chinese: what counts as heard, what as missing."""
# ruff: noqa: RUF001 - full-width marks are part of Chinese text

import pytest

from benchmarks.hearing_chinese import hold_chinese, missing_runs, missing_words


def test_marks_and_the_form_of_figures_are_no_errors() -> None:
    hearing = hold_chinese("在2019年，花了3.5元。", "在二零一九年 花了三点五元")
    assert (hearing.cer, hearing.cer_by_sound, hearing.characters) == (0, 0, 12)


def test_homophones_differ_in_writing_alone_and_other_sounds_in_both() -> None:
    traditional = hold_chinese("这里很安静", "這裡很安靜")
    assert traditional.cer == pytest.approx(0.6)
    assert traditional.cer_by_sound == 0
    wrong = hold_chinese("这里很安静", "这里很干净")
    assert (wrong.cer, wrong.cer_by_sound) == pytest.approx((0.4, 0.2))


def test_the_ending_of_an_adverb_is_a_homophone_and_the_ground_is_not() -> None:
    assert hold_chinese("她轻轻地走在地上", "她轻轻的走在地上").cer_by_sound == 0
    assert hold_chinese("她走在地上", "她走在的上").cer_by_sound == pytest.approx(0.2)


def test_an_english_word_is_heard_in_any_case_and_transcript() -> None:
    text = "用 Python 和 New York"
    assert missing_words(text, "用PYTHON和 new york") == []
    assert missing_words(text, "用八三和New York", "I use Python") == []
    assert missing_words(text, "用八三和纽约") == ["Python", "New", "York"]


def test_chinese_runs_are_heard_whole_and_in_order() -> None:
    text = "我用 Python 写了3个程序"
    assert missing_runs(text, "我用八三写了三个程序") == []
    assert missing_runs(text, "我用Python写了程序") == ["写了三个程序"]
    assert missing_runs("先来 A 后到", "后到 A 先来") == ["后到"]
