"""Makes English text safe to read aloud: nothing the reader knows nothing of is left in it. Pure.

The order matters: addresses before numbers (dots), money before decimals, single characters last.
`REVISION` names these rules; it is part of the engine's version, since they shape the sound.
"""
# ruff: noqa: RUF001 - look-alike characters are the subject of this module

import re
import unicodedata
from collections.abc import Callable, Collection

from worker.engines.english.money import read_money
from worker.engines.english.numbers import read_numbers
from worker.engines.english.symbols import read_symbols
from worker.engines.english.web import read_addresses

REVISION = 1

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0xFFE5: "¥"}
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\ufe00-\ufe0f]")
_MARKUP = re.compile(r"\]\(")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def read_aloud(
    text: str, *, letters: Collection[str], known: Callable[[str], bool], max_word: int
) -> tuple[str, str]:
    """Return the rewritten text and, in order, the letters and numbers that cannot be read.

    `letters`: non-ASCII letters the reader knows. `known` says whether its lexicon has a word; a
    word it lacks is guessed from at most `max_word` letters, so longer ones are cut in pieces.
    """
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text.translate(_WIDE)))
    text = _SPACES.sub(" ", text)
    text = _MARKUP.sub("] (", text)  # the reader would speak what such markup dictates
    text = read_numbers(read_money(read_addresses(text)))
    text, unreadable = read_symbols(text, letters)
    text = _WORD.sub(lambda m: _cut(m.group(), known, max_word), text)
    return _SPACES.sub(" ", text).strip(), unreadable


def _cut(word: str, known: Callable[[str], bool], max_word: int) -> str:
    if len(word) <= max_word or known(word):
        return word
    pieces = -(-len(word) // max_word)
    length = -(-len(word) // pieces)
    return " ".join(word[i : i + length] for i in range(0, len(word), length))
