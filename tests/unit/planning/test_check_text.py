"""Text that cannot become speech is refused with a code and an offset."""

import pytest

from shared.errors import UsageError
from shared.planning import check_text


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("", "empty-text", 0),
        (" \n\t ", "nothing-speakable", 0),
        (" ... —!?", "nothing-speakable", 1),
        ("\ufeff\u200b", "nothing-speakable", 0),
        ("😀 $ %", "nothing-speakable", 0),
        ("<i></i>", "nothing-speakable", 0),
        ("ab\x00c", "control-character", 2),
        ("ab\x1bc", "control-character", 2),
        ("ab\x0cc", "control-character", 2),
        ("ab\x7fc", "control-character", 2),
        ("ab\x9fc", "control-character", 2),
        ("ab\ud800c", "invalid-character", 2),
        ("ab\ufffec", "invalid-character", 2),
        ("ab\ufdd0c", "invalid-character", 2),
        ("ab\U0010ffffc", "invalid-character", 2),
    ],
)
def test_a_hopeless_text_is_refused(text: str, code: str, offset: int) -> None:
    with pytest.raises(UsageError) as refused:
        check_text(text)
    assert (refused.value.code, refused.value.fields["offset"]) == (code, offset)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "5",
        "好",
        "\ufeffa\r\nb\tc\x85d\u2028e\u2029f",
        "zero\u200bwidth \u202ebidi\u202c co\u00adoperate",
        "😀 a",
        "\ufffd a",
    ],
)
def test_a_text_with_a_word_in_it_is_accepted(text: str) -> None:
    check_text(text)
