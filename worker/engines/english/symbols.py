"""Reads every single character: kept, turned into a word, or known to be silent. Pure.

Silent are punctuation, quotes, brackets, spaces, invisible characters, modifiers, and runs of three
or more equal marks, which are typographical rules. Letters and numbers are never silent: one that
English cannot read is reported, so that its text is refused rather than missing.
"""
# ruff: noqa: RUF001 - look-alike characters are the subject of this module

import re
import unicodedata
from collections.abc import Collection

from worker.engines.english.characters import LATIN, PUNCTUATION, WORDS

_NAMED_LETTER = re.compile(r"(?:LATIN|GREEK)\b.*\bLETTER (?P<name>[A-Z]+)")
_RULE = re.compile(r"([=~+<>|^#*_\-/\\.–—])\1{2,}")
_DEGREES = re.compile(r"\s?°\s?([CF])\b")
_ONE_DEGREE = re.compile(r"(?<![\d.,])1\s?°(?:\s?([CF])\b)?")
_SCALES = {None: "", "C": " Celsius", "F": " Fahrenheit"}
_BETWEEN = re.compile(r"(?<=\w)\*+(?=\w)")
_BACKTICK = re.compile(r"(?<=\w)[`´](?=\w)")
_POWER = re.compile(r"(?<=[\w)])\s?\^\s?(?=[\w(-])")
_ABOUT = re.compile(r"(?<!\w)~\s?(?=\d)")
_NUMBER = re.compile(r"(?<![\w&])#\s?(?=\d)")
_SHARP = re.compile(r"\b([A-G])#(?!\w)")
_HASHTAG = re.compile(r"(?<!\w)#(?=\w)")
_AMPERSAND = re.compile(r"(?<=[A-Za-z])&(?=[A-Za-z])")
_MICRO = re.compile(r"(?<=\d)\s?[µμ](?P<unit>[gmsLlAVFW])\b")
_MICRO_UNITS = {"g": "grams", "m": "meters", "s": "seconds", "l": "liters", "L": "liters"}
_MICRO_UNITS |= {"A": "amps", "V": "volts", "F": "farads", "W": "watts"}
_FRACTION_SLASH = "\u2044"
_KEPT_AMPERSAND = "\ue000"  # private use, removed from the input first


def read_symbols(text: str, letters: Collection[str]) -> tuple[str, str]:
    """Return the text in readable characters, and the letters and numbers nobody can read.

    `letters` are the non-ASCII letters the reader knows; others lose their accents.
    """
    text = _RULE.sub(_rule, text.replace(_KEPT_AMPERSAND, " "))
    text = _ONE_DEGREE.sub(lambda m: f"1 degree{_SCALES[m[1]]}", text)
    text = _DEGREES.sub(lambda m: f" degrees{_SCALES[m[1]]}", text)
    text = _BACKTICK.sub("'", _BETWEEN.sub(" ", text))
    text = _POWER.sub(" to the power of ", text)
    text = _ABOUT.sub(" about ", text)
    text = _NUMBER.sub(" number ", text)
    text = _SHARP.sub(r"\1 sharp", text)
    text = _HASHTAG.sub(" hashtag ", text)
    text = _MICRO.sub(lambda m: f" micro{_MICRO_UNITS[m['unit']]}", text)
    text = _AMPERSAND.sub(_KEPT_AMPERSAND, text)
    unreadable: list[str] = []
    read = "".join(_read(c, letters, unreadable) for c in text)
    return read.replace(_KEPT_AMPERSAND, "&"), "".join(unreadable)


def _rule(match: re.Match[str]) -> str:
    mark = match.group(1)
    return {".": "…", "-": " — ", "–": " — ", "—": " — "}.get(mark, " ")


def _read(char: str, letters: Collection[str], unreadable: list[str]) -> str:
    if char == _KEPT_AMPERSAND or char in PUNCTUATION or char in letters:
        return char
    if char.isascii() and (char.isalnum() or char == " "):
        return char
    word = WORDS.get(char)
    if word is not None:
        return f" {word} " if word.isascii() and word[:1].isalpha() and len(word) > 1 else word
    return _read_rare(char, unicodedata.category(char), unreadable)


def _read_rare(char: str, category: str, unreadable: list[str]) -> str:
    match category[0], category:
        case "N", "Nd":
            return str(unicodedata.digit(char))
        case "N", _:
            return f" {_number(char)} "
        case "L", _:
            folded = _fold(char)
            if not folded and category != "Lm":  # a modifier letter colours its neighbour
                unreadable.append(char)
            return folded
        case ("S", "Sk") | ("M", _):  # accents and tone marks, also those that stand alone
            return ""
        case "S", _:
            return f" {_fold(char) or _words_of_name(char)} "
    return " "


def _number(char: str) -> str:
    """A numeral outside the decimal digits: circled, Roman, a fraction."""
    value = unicodedata.numeric(char)
    if value == int(value):
        return str(int(value))
    folded = unicodedata.normalize("NFKC", char).replace(_FRACTION_SLASH, "/")
    return folded if folded.isascii() else f"{value:g}"


def _fold(char: str) -> str:
    """ASCII letters and digits for a character, or an empty string."""
    folded = unicodedata.normalize("NFKD", char)
    ascii_part = "".join(
        LATIN.get(c, c) for c in folded if unicodedata.category(c)[0] not in "MS" or c == char
    )
    if ascii_part and ascii_part.isascii() and ascii_part.isalnum():
        return ascii_part
    named = _NAMED_LETTER.match(unicodedata.name(char, ""))
    if named is None:
        return ""
    name = named["name"].lower()
    if len(name) > 1:
        return f" {name} "
    return name.upper() if char.isupper() else name


def _words_of_name(char: str) -> str:
    name = unicodedata.name(char, "").removesuffix(" SIGN")
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()
