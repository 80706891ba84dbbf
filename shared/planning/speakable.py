"""Whether a text can be spoken at all, asked before anything is written. Knows no sentences."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from shared.errors import UsageError
from shared.planning.manuscript import blank_markup
from shared.planning.scripts import COMMON, script_of, scripts_of

# C0, DEL and C1 without the line ends: \n, \r, \t and NEL (U+0085).
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
# Half a surrogate pair, and the 66 code points that Unicode promises never to use.
_NO_CHARACTER = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Unspeakable:
    """A letter of a script that none of the engine's languages is written in."""

    offset: int
    character: str
    script: str


def first_unspeakable(text: str, languages: Collection[str]) -> Unspeakable | None:
    """The first letter or digit that no engine of these languages can read, or None.

    Symbols and emoji do not count: they are left out and named whatever the languages.
    """
    visible = blank_markup(text)
    spoken = scripts_of(languages) | {COMMON}
    foreign = {one for one in set(visible) if one.isalnum() and script_of(one) not in spoken}
    if not foreign:
        return None
    offset = next(at for at, character in enumerate(visible) if character in foreign)
    return Unspeakable(offset, visible[offset], script_of(visible[offset]))


def is_any_speakable(text: str, languages: Collection[str]) -> bool:
    """Whether anything is left to say once what these languages cannot read is left out."""
    spoken = scripts_of(languages) | {COMMON}
    return any(one.isalnum() and script_of(one) in spoken for one in set(blank_markup(text)))


def check_text(text: str) -> None:
    """Refuse a text that cannot become speech.

    Raises `UsageError` with `code` "empty-text", "control-character", "invalid-character" or
    "nothing-speakable", and `offset` in characters. NEL (U+0085) is a line end, not a control.
    """
    if not text:
        raise UsageError("The text is empty.", code="empty-text", offset=0)
    for pattern, code, what in (
        (_CONTROL, "control-character", "a control character"),
        (_NO_CHARACTER, "invalid-character", "a code point that is no character"),
    ):
        if found := pattern.search(text):
            name = f"U+{ord(found.group()):04X}"
            message = f"The text holds {what}, {name}, at offset {found.start()}."
            raise UsageError(message, code=code, offset=found.start(), character=name)
    if not _WORD.search(blank_markup(text)):
        seen = next((at for at, one in enumerate(text) if _is_visible(one)), 0)
        message = "The text holds nothing to say: there is no letter or digit in it."
        raise UsageError(message, code="nothing-speakable", offset=seen)


def _is_visible(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character) not in {"Cf", "Mn"}
