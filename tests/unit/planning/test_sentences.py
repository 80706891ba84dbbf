"""Where one sentence ends and the next begins."""

from collections.abc import Callable

import pytest

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

Said = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He came. She left! Why? So.", ["He came.", "She left!", "Why?", "So."]),
        ("Pi is 3.14 or so. Yes.", ["Pi is 3.14 or so.", "Yes."]),
        ("It was $1,000.50. Cheap.", ["It was $1,000.50.", "Cheap."]),
        ("See example.com. Then go.", ["See example.com.", "Then go."]),
        ("We met Dr. He left.", ["We met Dr. He left."]),
        ("On Sat. Dec. 5 we met. Good.", ["On Sat. Dec. 5 we met.", "Good."]),
        ("J. R. R. Tolkien wrote it.", ["J. R. R. Tolkien wrote it."]),
        ("See vol. III and p. 5. Good.", ["See vol. III and p. 5.", "Good."]),
        ("No. 5 is alive. No. He said no.", ["No. 5 is alive.", "No.", "He said no."]),
        ("I live in the U.S. army base.", ["I live in the U.S. army base."]),
        ("I took e.g. Apples.", ["I took e.g. Apples."]),
        ("Wait... what? Yes… I do.", ["Wait... what?", "Yes… I do."]),
        ('He said "hello." Then he left.', ['He said "hello."', "Then he left."]),
        ("“No!” he cried. “Go!” She did.", ["“No!” he cried.", "“Go!”", "She did."]),
        ("Alas! my friend is gone. Oh.", ["Alas! my friend is gone.", "Oh."]),
        ("(It was so.) He left.", ["(It was so.) He left."]),
        ("He left. ” She came.", ["He left. ”", "She came."]),
        ("Good . . . Bad.", ["Good . . .", "Bad."]),
        ("1. First item. 2. Second item.", ["1. First item.", "2. Second item."]),
        (
            "It is not for me. Harry said no. Harry left.",
            ["It is not for me.", "Harry said no.", "Harry left."],
        ),
        (
            "“Is it so? I think. So it is,” he said.",
            ["“Is it so?", "I think.", "So it is,” he said."],
        ),
        (
            '"It is." He left. "It is not," he said.',
            ['"It is."', "He left.", '"It is not," he said.'],
        ),
        ("It cost 10s. sterling. Yes.", ["It cost 10s. sterling.", "Yes."]),
        ("i went home. then i slept.", ["i went home.", "then i slept."]),
        ("One." + " " * 40 + "Two.", ["One.", "Two."]),
        ("What?! No!!! Ok.", ["What?!", "No!!!", "Ok."]),
    ],
)
def test_english(said: Said, text: str, sentences: list[str]) -> None:
    assert said(text) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("他来了。她走了！真的吗？", ["他来了。", "她走了！", "真的吗？"]),
        ("价格是３．１４元。好。", ["价格是３．１４元。", "好。"]),
        ("圆周率是3.14。好。", ["圆周率是3.14。", "好。"]),
        ("他说：“你好。”然后走了。", ["他说：“你好。”", "然后走了。"]),
        ("「走吧。」他说。（完。）好", ["「走吧。」", "他说。", "（完。）", "好"]),
        ("“好！”，他说。", ["“好！”，他说。"]),
        ("是的……也许——不。对", ["是的……也许——不。", "对"]),
        ("什么？！！不。", ["什么？！！", "不。"]),
        ('他说。"你好。"她走了。', ["他说。", '"你好。"', "她走了。"]),
        ("他来了!真的?是.好", ["他来了!", "真的?", "是.", "好"]),
    ],
)
def test_chinese(said: Said, text: str, sentences: list[str]) -> None:
    assert said(text, languages=("zh",), language="zh") == sentences


@pytest.mark.parametrize("language", ["en", "zh"])
def test_both_languages_in_one_paragraph(said: Said, language: str) -> None:
    text = "Mr. Smith来了。他叫Mr. Smith。He came. 好的！Good!不。"
    assert said(text, languages=("zh", "en"), language=language) == [
        "Mr. Smith来了。",
        "他叫Mr. Smith。",
        "He came.",
        "好的！",
        "Good!",
        "不。",
    ]


def test_other_scripts_end_sentences_with_their_own_marks(said: Said) -> None:
    assert said("यह है। वह है।", languages=("hi",), language="hi") == ["यह है।", "वह है।"]
    assert said("Он ушёл. Она ждёт.", languages=("ru",), language="ru") == [
        "Он ушёл.",
        "Она ждёт.",
    ]


def test_a_paragraph_longer_than_the_splitters_window_is_split_like_a_short_one(said: Said) -> None:
    sentence = "Mr. Brown, who lived at No. 5, paid $3.14 for it."
    assert said(" ".join([sentence] * 500)) == [sentence] * 500


def test_a_full_stop_after_a_long_stretch_without_any_is_found(said: Said) -> None:
    pieces = said("word " * 3_000 + "end. Next one here.")
    assert pieces[-1] == "Next one here."
    assert pieces[-2].endswith("end.")


def test_a_sentence_longer_than_the_splitters_window_does_not_hide_the_next(said: Said) -> None:
    pieces = said("Mr. Brown and " * 300 + "all went. Next one here.")
    assert pieces[-1] == "Next one here."
    assert not any(piece.endswith("Mr.") for piece in pieces)


def test_the_splitter_is_shielded_from_what_makes_it_panic(said: Said) -> None:
    assert said("\u3000Aé. B\u3000é.\u3000C. \ud800. D.", language="de")[0] == "Aé."
