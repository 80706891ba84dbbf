"""English text before it is read: everything that would be lost has become words."""
# ruff: noqa: RUF001 - look-alike characters are the subject of these tests

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from worker.engines.english.numbers import DIGITS
from worker.engines.english.reading import read_aloud

LETTERS = frozenset("éèüñçøłß")
READABLE = re.compile(r"[A-Za-z0-9 .,;:!?'\"()—…“”‘’\-–/&éèüñçøłß]*")


def read(text: str) -> str:
    words, unreadable = read_aloud(text, letters=LETTERS, known=lambda _: False, max_word=24)
    assert not unreadable
    return words


READINGS = {
    # money
    "It costs $5.": "It costs 5 dollars.",
    "$5.50": "5 dollars and 50 cents",
    "$1": "1 dollar",
    "$0.99": "99 cents",
    "£1.01": "1 pound and 1 penny",
    "5€": "5 euros",
    "€5,50": "5 euros and 50 cents",
    "US$3 million": "3 million U.S. dollars",
    "$5–10": "5 to 10 dollars",
    "-$5": "minus 5 dollars",
    "$10/month": "10 dollars per month",
    "$1.999": "1 point nine nine nine dollars",
    "$100k": "100 thousand dollars",
    "the $ fell": "the dollar fell",
    "¥100, ₹5, ₿2": "100 yen, 5 rupees, 2 bitcoins",
    # numbers
    "3.10": "3 point one zero",
    "007": "zero zero seven",
    "v2.0.1": "v2 point 0 point 1",
    "1,5,7": "1, 5, 7",
    "1,234": "1,234",
    "-5": "minus 5",
    "(-5)": "( minus 5)",
    "5-3": "5-3",
    "3.5km": "3 point 5km",
    "1'000": "1,000",
    "10 000": "10,000",
    "2*3": "2 times 3",
    "16:9": "16 to 9",
    "10:30": "10:30",
    "1e-5": "1 e minus 5",
    "x²": "x squared",
    "10⁻³": "10 to the power of minus 3",
    "00k": "zero zero k",
    "x⁵": "x to the power of 5",
    "1½": "1 and 1/2",
    "⅔": "2/3",
    "①٣３Ⅳ": "1 33 4",
    "2019-03-05": "2019-03-05",
    "555-0123": "555-0123",
    # signs
    "A & B": "A and B",
    "AT&T": "AT&T",
    "50%": "50 percent",
    "#1": "number 1",
    "#fun": "hashtag fun",
    "C# and F#": "C sharp and F sharp",
    "C++": "C plus plus",
    "1+1=2": "1 plus 1 equals 2",
    "a<b": "a less than b",
    "~5": "about 5",
    "x^2": "x to the power of 2",
    "20°C": "20 degrees Celsius",
    "1°": "1 degree",
    "5 µg": "5 micrograms",
    "§ 5": "section 5",
    "→": "to",
    "😀": "grinning face",
    "snake_case": "snake case",
    # addresses
    "a@b.com": "a at b dot com",
    "See www.x.org.": "See w w w dot x dot org.",
    "https://x.io/a?b=1": "https colon slash slash x dot io slash a question mark b equals 1",
    "/usr/bin": "slash usr slash bin",
    # letters
    "café": "café",
    "Nguyễn": "Nguyen",
    "ａｂｃ": "abc",
    "ﬁne": "fine",
    "𝐀𝐁": "AB",
    "α": "alpha",
    "Þór": "Thor",
    "e\u0301": "é",
    # silent, and meant to be
    "**bold** `code`": "bold code",
    "Title\n======": "Title",
    "zero\u200bwidth": "zerowidth",
    "[link](/bˈI/)": "(link) (/bI/)",
    "“Quoted” ‘so’ «and so»": "“Quoted” ‘so’ “and so”",
}


@pytest.mark.parametrize("text", READINGS)
def test_text_is_rewritten_so_that_nothing_is_lost(text: str) -> None:
    assert read(text) == READINGS[text]


def test_foreign_letters_are_reported_and_not_dropped() -> None:
    for text in ("мир", "日本", "שלום", "ไทย"):
        _, unreadable = read_aloud(f"a {text}", letters=(), known=lambda _: False, max_word=24)
        assert unreadable == "".join(c for c in text if unicodedata.category(c)[0] == "L")


def test_words_longer_than_the_guesser_reads_are_cut_and_known_ones_are_not() -> None:
    word = "abcdefghij" * 6
    assert read(word).replace(" ", "") == word
    assert max(map(len, read(word).split())) <= 24
    known, _ = read_aloud(word, letters=(), known=lambda w: w == word, max_word=24)
    assert known == word


@given(st.text(max_size=60))
def test_only_readable_characters_are_left(text: str) -> None:
    words, _ = read_aloud(text, letters=LETTERS, known=lambda _: True, max_word=24)
    assert READABLE.fullmatch(words), ascii(words)


@given(st.text(max_size=60))
@example("\ufb2a")  # a letter that is two characters: the letter and its point
def test_every_letter_and_number_is_read_or_reported(text: str) -> None:
    for char in text:
        if unicodedata.category(char)[0] not in "LN" or unicodedata.category(char) == "Lm":
            continue
        words, unreadable = read_aloud(char, letters=LETTERS, known=lambda _: True, max_word=24)
        letters = [c for c in unicodedata.normalize("NFC", char) if not unicodedata.combining(c)]
        assert (unreadable == "".join(letters)) != any(map(str.isalnum, words))


@given(st.text(alphabet="0123456789012345 .,:-'qk%$/", max_size=30))
def test_no_digit_is_lost_whatever_is_around_it(text: str) -> None:
    words = read(text)
    for digit, name in enumerate(DIGITS):
        words = re.sub(rf"\b{name}\b", str(digit), words)
    lost = re.sub(r"\D", "", text)
    if "$" in text:  # cents that are zero, and zero dollars, are not said
        lost, words = lost.replace("0", ""), words.replace("0", "")
    assert re.sub(r"\D", "", words) == lost


@given(st.text(alphabet="abcdefgh ABC.,;!?'-()\n", max_size=60))
@example("A.de")
def test_plain_text_keeps_all_its_letters_in_order(text: str) -> None:
    text = re.sub(r"\.(?=\w)", ". ", text)  # within a word it makes an address, and is said
    kept, given = ("".join(filter(str.isalpha, t)) for t in (read(text), text))
    assert kept == given


@given(st.text(alphabet="a.@/:-_$1,0'’*=~^ ", min_size=380, max_size=400))
def test_hostile_text_takes_no_long_time(text: str) -> None:
    read(text)  # the deadline of the test is the assertion
