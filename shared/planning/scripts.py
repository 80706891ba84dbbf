"""Which script a letter belongs to, and which scripts a language is written in.

Knows single characters only. Scripts are told from the Unicode character names that Python ships
(a name starts with its script), so no table of code points has to be kept up to date.
"""

import unicodedata
from collections.abc import Collection

COMMON = "Common"  # digits, modifiers and other signs that every script shares
LATIN = "Latin"

# First words of character names that are not themselves the name of a script.
_BY_FIRST_WORD = {
    "LATIN": LATIN,
    "TURNED": LATIN,
    "ROMAN": LATIN,
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HANGZHOU": "Han",
    "HENTAIGANA": "Hiragana",
    "KATAKANA-HIRAGANA": "Katakana",
    "ARABIC-INDIC": "Arabic",
    "EXTENDED": "Arabic",
    "RUMI": "Arabic",
    "MICRO": COMMON,
    "OHM": COMMON,
    "DIGIT": COMMON,
    "FRACTION": COMMON,
    "MODIFIER": COMMON,
    "CARON": COMMON,
    "DINGBAT": COMMON,
    "NEGATIVE": COMMON,
    "DOUBLE": COMMON,
    "SEGMENTED": COMMON,
}
# Names that begin so say how a letter is drawn: only what it stands for tells its script.
_DRAWN = frozenset({"MODIFIER", "DOUBLE", "NEGATIVE", "TURNED"})

_CYRILLIC = frozenset({"Cyrillic"})
_ARABIC = frozenset({"Arabic"})
_DEVANAGARI = frozenset({"Devanagari"})
_LATIN_ONLY = frozenset({LATIN})
_SCRIPTS = {
    "zh": frozenset({"Han", "Bopomofo"}),
    "yue": frozenset({"Han", "Bopomofo"}),
    "ja": frozenset({"Han", "Hiragana", "Katakana"}),
    "ko": frozenset({"Hangul", "Han"}),
    "ru": _CYRILLIC,
    "uk": _CYRILLIC,
    "be": _CYRILLIC,
    "bg": _CYRILLIC,
    "mk": _CYRILLIC,
    "kk": _CYRILLIC,
    "mn": _CYRILLIC,
    "sr": frozenset({"Cyrillic", LATIN}),
    "el": frozenset({"Greek"}),
    "he": frozenset({"Hebrew"}),
    "yi": frozenset({"Hebrew"}),
    "ar": _ARABIC,
    "fa": _ARABIC,
    "ur": _ARABIC,
    "ps": _ARABIC,
    "hi": _DEVANAGARI,
    "mr": _DEVANAGARI,
    "ne": _DEVANAGARI,
    "sa": _DEVANAGARI,
    "bn": frozenset({"Bengali"}),
    "pa": frozenset({"Gurmukhi"}),
    "gu": frozenset({"Gujarati"}),
    "ta": frozenset({"Tamil"}),
    "te": frozenset({"Telugu"}),
    "kn": frozenset({"Kannada"}),
    "ml": frozenset({"Malayalam"}),
    "si": frozenset({"Sinhala"}),
    "th": frozenset({"Thai"}),
    "lo": frozenset({"Lao"}),
    "km": frozenset({"Khmer"}),
    "my": frozenset({"Myanmar"}),
    "am": frozenset({"Ethiopic"}),
    "ka": frozenset({"Georgian"}),
    "hy": frozenset({"Armenian"}),
}


def primary(language: str) -> str:
    """The primary subtag of a BCP 47 tag: "zh" of "zh-Hans"."""
    return language.replace("_", "-").partition("-")[0].lower()


def scripts_of(languages: Collection[str]) -> frozenset[str]:
    """Every script that one of the languages is written in; an unknown language is Latin."""
    return frozenset().union(*(_SCRIPTS.get(primary(one), _LATIN_ONLY) for one in languages))


def script_of(character: str) -> str:
    """The script of one letter or digit, as Unicode calls it ("Latin", "Han"), or `COMMON`.

    A letter that is only drawn differently (full-width, bold, circled, superscript) has the script
    of what it stands for.
    """
    if character.isascii():
        return LATIN if character.isalpha() else COMMON
    first_word = unicodedata.name(character, "").partition(" ")[0]
    if first_word not in _DRAWN and first_word in _BY_FIRST_WORD:
        return _BY_FIRST_WORD[first_word]
    for plain in unicodedata.normalize("NFKC", character):
        if plain != character and plain.isalnum():
            return script_of(plain)
    return _BY_FIRST_WORD.get(first_word) or first_word.title() or "Unknown"
