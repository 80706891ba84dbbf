"""Divides a sentence into runs of one language: Chinese or English. Pure; knows no phonemes.

Letters decide; figures, signs and marks follow them. A figure that touches a letter belongs to it
(GPT-4, 3D); one before a Chinese measure or beside a Chinese character is Chinese; any other goes
with the words on its left, else with those on its right, else with the utterance's own language.
"""
# ruff: noqa: RUF001, RUF003 - look-alike characters are the subject of this module

import re
import unicodedata
from dataclasses import dataclass
from itertools import groupby

from worker.engines.chinese.reading import HAN
from worker.engines.chinese.units import CURRENCIES, UNITS

ZH, EN = "zh", "en"

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0xFFE5: "¥"}
# Marks of Chinese print take the room of a character and so need no space after them; ours do:
# "OK。Yes" is no web address, and "110，120" no hundred and ten thousand.
_MARKS = str.maketrans(
    {"，": ", ", "；": "; ", "！": "! ", "？": "? ", "。": ". ", "｡": ". ", "、": ", ", "､": ", "}
    | {"﹑": ", ", "︰": ": ", "·": " ", "・": " ", "‧": " "}
    | dict.fromkeys("「『《〈【〔〖〝﹁﹃", "“")
    | dict.fromkeys("」』》〉】〕〗〞﹂﹄", "”")
)
# Between figures a colon is one of time or proportion: 8：30, 3：2.
_COLON = re.compile(r"(?<!\d)：|：(?!\d)")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\ufe00-\ufe0f]")
_ELLIPSIS = re.compile(r"…{2,}|\.{3,}")
_DASHES = re.compile(r"[—―]{2,}")

# Numerals that are no decimal digits: fractions, superscripts, circled and Roman ones.
_NUMERALS = (
    "¼½¾²³¹\u2070-\u2089\u2150-\u218b\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3220-\u3229"
    "\u3248-\u324f\u3251-\u325f\u3280-\u3289\u32b1-\u32bf"
)
_LETTER = rf"(?![{_NUMERALS}])[^\W\d_]"
_UNIT = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
_MONEY = "|".join(map(re.escape, sorted(CURRENCIES, key=len, reverse=True)))
_TOKEN = re.compile(
    rf"(?P<han>[{HAN}々]+)"
    rf"|(?P<figure>(?:[-−]?(?:{_MONEY})\s?)?[-−+]?(?>\d(?:[\d,.:/~〜–—-]*\d)?|[{_NUMERALS}])"
    rf"(?:\s?[%‰])?(?:\s?(?:{_UNIT}))?"
    rf"(?![^\W_{HAN}]|[-_'’][^\W\d_{HAN}]))"
    rf"|(?P<word>(?:(?![{HAN}々]){_LETTER}|\d|[@#](?=(?![{HAN}々])[^\W_]))(?:(?![{HAN}々])[^\W_]|"
    rf"[-_./'’&@#+:%?=~](?=[-_./'’&@#+:%?=~]*(?![{HAN}々])[^\W_]))*(?:\+\+|#)?)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_COUNTED = re.compile(
    r"\s?[年月日号点时分秒个位名只条张本次件种台座家天周岁元块万亿千百倍度章节页集部届期版楼层号路米"
    r"公斤人]"
)
_OPENING = frozenset("“‘(（[{<")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text to be read in one language, `ZH` or `EN`."""

    language: str
    text: str


def tidy(text: str) -> str:
    """One form for each character: composed, full-width letters and Chinese marks in plain ASCII.

    Quotes and brackets of Chinese print become “ and ”; what is invisible goes.
    """
    text = _COLON.sub(": ", unicodedata.normalize("NFC", text).translate(_MARKS)).translate(_WIDE)
    text = _DASHES.sub("—", _ELLIPSIS.sub("…", _INVISIBLE.sub("", text)))
    return " ".join(text.split())


def language_runs(text: str, language: str) -> list[Run]:
    """The runs of a tidied text, in order; their texts joined are the text.

    `language` is that of the utterance: it decides where no letter does.
    """
    tokens = [(found.lastgroup or "other", found.group()) for found in _TOKEN.finditer(text)]
    languages = _languages(tokens, language)
    at, runs = 0, []
    for spoken, of_run in groupby(languages):
        end = at + len(list(of_run))
        runs.append(Run(spoken, "".join(token for _, token in tokens[at:end])))
        at = end
    return runs


def _languages(tokens: list[tuple[str, str]], language: str) -> list[str]:
    known: list[str | None] = []
    for at, (kind, token) in enumerate(tokens):
        match kind:
            case "han":
                known.append(ZH)
            case "word":
                known.append(EN)
            case "figure":
                known.append(ZH if _is_chinese(tokens, at) else None)
            case _:
                known.append("" if token in _OPENING else None)
    # What no letter decides follows what is on its left; an opening bracket what is on its right.
    first = next((one for one in known if one), language)
    decided, last = [], first
    for one in known:
        last = one or last
        decided.append("" if one == "" else last)
    following = last
    for at in reversed(range(len(decided))):
        following = decided[at] = decided[at] or following
    return decided


def _is_chinese(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether a figure touches Chinese, or stands before something that Chinese counts with."""
    before = tokens[at - 1][0] if at else ""
    after = "".join(token for _, token in tokens[at + 1 : at + 3])
    touches = at + 1 < len(tokens) and tokens[at + 1][0] == "han"
    return before == "han" or touches or bool(_COUNTED.match(after))
