"""The job's text in three views of equal length, so that one offset serves all of them.

Knows characters, not sentences. `text` is the source with inline tags blanked and all line ends
alike, `shape` says with one letter what each character is, and `plain` is an ASCII likeness for
the sentence splitter.
"""

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from itertools import compress

from shared.planning.scripts import COMMON, script_of

# Han, kana and bopomofo: written without spaces between words.
UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3040-\u30ff\u3100-\u312f"
    "\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
CLOSERS = "”’»›」』）】》〉〕］｝)\\]}"

# The letters of `shape`.
WORD, IDEOGRAPH, UNSPEAKABLE, SYMBOL = "w", "h", "u", "s"
MARK, DROPPED, OTHER, SPACE, NEWLINE, PARAGRAPH = "m", "d", "o", " ", "\n", "q"

_OTHER_NEWLINES = "\r\v\f\x1c\x1d\x1e\x85\u2028"
_TAG = re.compile(r"</?(b|cite|em|i|s|small|span|strong|sub|sup|u)>", re.IGNORECASE)
_SPOKEN_SIGNS = frozenset("©®™°№℃℉⁄⁒")  # category So or Sm, and engines read them
_ASCII_OF_CLASS = {SPACE: " ", NEWLINE: " ", PARAGRAPH: " ", DROPPED: " ", MARK: "x"}
_ASCII_OF_SIGN = (
    {ord(sign): '"' for sign in "“”„‟«»「」『』〝〞"}
    | {ord(sign): "'" for sign in "‘’‚‛‹›"}
    | {ord(sign): "-" for sign in "‐‑‒–—―"}
    | {ord(sign): "." for sign in "。｡۔।॥።։"}
    | {ord(sign): "?" for sign in "\u061f\u2e2e\u037e"}
    | {ord("！"): "!", ord("？"): "?", ord("．"): "."}
)
_LINE_JOINT = re.compile(
    rf"(?<=[{UNSPACED}])[^\S\n]*\n\s*(?=[{UNSPACED}])|(?<=[^\W_]-)[^\S\n]*\n\s*(?=[^\W_])"
)


@dataclass(frozen=True, slots=True)
class Manuscript:
    """Three views of one text; all offsets are offsets into the job's text."""

    text: str
    shape: str
    plain: str

    def spoken(self, start: int, end: int) -> str:
        """What an engine would be asked to say for a range: one line, single spaces, trimmed.

        Invisible characters are left out. A line end inside unspaced script joins without a space,
        and so does one after a hyphen: the hyphen itself is kept, since "well-" before "known" and
        "hap-" before "pened" cannot be told apart without a dictionary.
        """
        raw = self.text[start:end]
        shape = self.shape[start:end]
        if DROPPED in shape:
            raw = "".join(compress(raw, map(DROPPED.__ne__, shape)))
        if NEWLINE in shape:
            raw = _LINE_JOINT.sub("", raw)
        return " ".join(raw.split())


def blank_markup(text: str) -> str:
    """The text with paired inline HTML tags (`<i>`, `</i>`) turned into as many U+200B.

    Such tags survive in plain-text editions of books and are not words. A name counts only when
    both its opening and its closing tag occur, so that `a <b> c` in prose stays what it is.
    """
    if "</" not in text:
        return text
    found = {tag.group().lower() for tag in _TAG.finditer(text)}
    paired = {tag for tag in found if {f"<{tag.strip('</>')}>", f"</{tag.strip('</>')}>"} <= found}

    def blank(tag: re.Match[str]) -> str:
        return "\u200b" * len(tag.group()) if tag.group().lower() in paired else tag.group()

    return _TAG.sub(blank, text)


def read(text: str, speakable: Collection[str] | None = None) -> Manuscript:
    """Look at every character once. `speakable` names the scripts that can be spoken; None: all."""
    visible = blank_markup(text).replace("\r\n", " \n")
    for newline in _OTHER_NEWLINES:
        visible = visible.replace(newline, "\n")
    distinct = set(visible)
    shapes = {ord(one): _shape_of(one, speakable) for one in distinct}
    plains = {ord(one): _plain_of(one, shapes[ord(one)]) for one in distinct}
    return Manuscript(visible, visible.translate(shapes), visible.translate(plains))


def is_readable_sign(character: str) -> bool:
    """Whether a symbol has a reading: mathematics, currency, units, and everything in ASCII."""
    if character.isascii() or character in _SPOKEN_SIGNS:
        return True
    category = unicodedata.category(character)
    if category == "Sm":  # without arrows, geometric shapes and brackets drawn in pieces
        likeness = unicodedata.normalize("NFKC", character)
        return character <= "\u00ff" or "\u2200" <= character <= "\u22ff" or likeness.isascii()
    return category == "Sc" or category[0] == "P"


def _shape_of(character: str, speakable: Collection[str] | None) -> str:
    if character.isspace():
        return {"\n": NEWLINE, "\u2029": PARAGRAPH}.get(character, SPACE)
    if character.isalnum():
        script = script_of(character)
        if speakable is not None and script != COMMON and script not in speakable:
            return UNSPEAKABLE
        return IDEOGRAPH if re.match(f"[{UNSPACED}]", character) else WORD
    return _shape_of_sign(character)


def _shape_of_sign(character: str) -> str:
    category = unicodedata.category(character)
    if category in {"Cc", "Cf", "Me"} or "VARIATION SELECTOR" in unicodedata.name(character, ""):
        return DROPPED
    if category[0] == "M":
        return MARK
    return OTHER if is_readable_sign(character) else SYMBOL


def _plain_of(character: str, shape: str) -> str:
    """An ASCII character that plays the same part in a sentence."""
    if shape in _ASCII_OF_CLASS:
        return _ASCII_OF_CLASS[shape]
    if character.isascii():
        return character
    if shape == IDEOGRAPH:
        return "#"  # no letter, so that a Latin abbreviation after it begins a word
    if character.isalnum():
        likeness = unicodedata.normalize("NFKD", character)[0]
        if likeness.isascii() and likeness.isalnum():
            return likeness
        return "X" if character.isupper() else "x"
    return _ASCII_OF_SIGN.get(ord(character), ",")
