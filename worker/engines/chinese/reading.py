"""Makes a Chinese stretch safe to read aloud: every figure and sign becomes characters. Pure.

The order matters: dates and times before ranges, money and units before plain figures, single
signs last. Letters of other scripts are none of its business: they are reported as unreadable.
`REVISION` names these rules; it is part of the engine's version, since they shape the sound.
"""
# ruff: noqa: RUF001 - look-alike characters are the subject of this module

import re
import unicodedata
from collections.abc import Callable, Iterator

from worker.engines.chinese.numbers import cardinal, number, spell_digits
from worker.engines.chinese.units import CURRENCIES, SIGNS, UNITS

REVISION = 2

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\ufa0e-\ufa29\U00020000-\U000323af"
PUNCTUATION = frozenset('.,;:!?—…()“”" ')
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_SIGNED = rf"(?:(?<![A-Za-z\d)])[-−+])?{_NUMBER}"
_DASH = r"(?:[-–—~〜…]|\.{2,3}|\s[-–—~〜…]\s)"  # "5 -3" is no span
_UNIT = rf"(?:{'|'.join(map(re.escape, sorted(UNITS, key=len, reverse=True)))})(?![A-Za-z\d])"
_CURRENCY = "|".join(map(re.escape, sorted(CURRENCIES, key=len, reverse=True)))
_SCALE = r"(?P<scale>\s?[百千万亿]+)?"
_SIGNS = {"-": "负", "−": "负", "+": "正"}
_MEASURES = (
    "个位名只条张本次件种杯碗瓶辆台座家天年岁周秒米倍千万亿块元斤层层排首句段篇页部项份点步头匹棵朵"
)
_NUMBERED = (
    r"(?:号码|编号|账号|帐号|卡号|证号|单号|学号|工号|尾号|密码|邮编|电话|手机|热线|验证码)号?"
    r"[:是为]?\s?"
)
_FRACTION = re.compile("[¼½¾⅐-⅞]")
_UNNAMED = {"Cn", "Co", "Cs"}  # what they look like only a font knows
_ITERATED = re.compile("(?P<one>[^\\W\\d_])々")


def read_aloud(text: str) -> tuple[str, str]:
    """Return Han characters, spaces and `PUNCTUATION` alone, and, in order, what is unreadable."""
    text = _ITERATED.sub(r"\g<one>\g<one>", text).replace("〇", "零")
    text = _FRACTION.sub(lambda m: unicodedata.normalize("NFKC", m[0]).replace("⁄", "/"), text)
    for pattern, read in _RULES:
        text = pattern.sub(read, text)
    unreadable: list[str] = []
    read_text = "".join(_characters(text, unreadable))
    return " ".join(read_text.split()), "".join(unreadable)


def _characters(text: str, unreadable: list[str]) -> Iterator[str]:
    for char in text:
        if char in PUNCTUATION or re.match(f"[{HAN}]", char):
            yield char
        elif char in SIGNS:
            yield SIGNS[char]
        elif char in CURRENCIES:
            yield CURRENCIES[char]
        elif char.isdigit() and unicodedata.decimal(char, None) is not None:
            yield cardinal(str(unicodedata.decimal(char)))
        elif char.isnumeric() and float(unicodedata.numeric(char)).is_integer():
            yield cardinal(str(int(unicodedata.numeric(char))))
        elif unicodedata.category(char)[0] in "LNS" or unicodedata.category(char) in _UNNAMED:
            unreadable.append(char)
        else:
            yield " "  # quotes, brackets, marks and what is invisible make no sound


def _signed(figure: str) -> str:
    return _SIGNS.get(figure[:1], "") + number(figure.lstrip("+-−"))


def _date(match: re.Match[str]) -> str:
    year, month, day = match.groups()
    return f"{spell_digits(year)}年{cardinal(str(int(month)))}月{cardinal(str(int(day)))}日"


def _years(match: re.Match[str]) -> str:
    return f"{spell_digits(match[1])}到{spell_digits(match[2])}"


def _time(match: re.Match[str]) -> str:
    hours, minutes, seconds = match["h"], match["m"], match["s"]
    read = f"{cardinal(str(int(hours)))}点"
    if int(minutes) or seconds:
        zero = "零" if minutes[0] == "0" else ""
        read += f"{zero}{cardinal(str(int(minutes)))}分" if int(minutes) else "零分"
    else:
        read += "整"
    if seconds:
        read += f"{cardinal(str(int(seconds)))}秒"
    return read


def _percent(match: re.Match[str]) -> str:
    of = "百分之" if match["sign"] == "%" else "千分之"
    first = match["first"]
    minus = _SIGNS.get(first[:1], "")
    upto = f"到{of}{number(match['upto'])}" if match["upto"] else ""
    return f"{minus}{of}{number(first.lstrip('+-−'))}{upto}"


def _money(match: re.Match[str]) -> str:
    upto = f"到{number(match['upto'])}" if match["upto"] else ""
    scale = (match["scale"] or "").strip()
    minus = "负" if match["minus"] else ""
    return f"{minus}{number(match['first'])}{upto}{scale}{CURRENCIES[match['currency']]}"


def _measure(match: re.Match[str]) -> str:
    upto = f"到{_signed(match['upto'])}" if match["upto"] else ""
    return f"{_signed(match['first'])}{upto}{UNITS[match['unit']]}"


def _range(match: re.Match[str]) -> str:
    return f"{_signed(match['first'])}到{number(match['upto'])}"


def _pair(match: re.Match[str]) -> str:
    return f"两{match['space']}{match['measure']}"


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=°)(\d{1,2})\s?['’′]"), lambda m: f"{cardinal(m[1])}分"),
    (re.compile(r"(?<=[分′'])(\d{1,2}(?:\.\d+)?)\s?[\"”″]"), lambda m: f"{number(m[1])}秒"),
    (re.compile(r"(?<=\d)\s?′"), lambda _: "分"),
    (re.compile(r"(?<=\d)\s?″"), lambda _: "秒"),
    (re.compile(r"(?<!\d)(\d{4})[-/.](0?[1-9]|1[0-2])[-/.](0?[1-9]|[12]\d|3[01])(?!\d)"), _date),
    (re.compile(rf"(?<![\d.,])(\d{{4}}){_DASH}(\d{{4}})(?=\s?年)"), _years),
    (
        re.compile(r"(?<![\d.,])\d{4}(?=\s?年)|(?<![\d.,])\d[05](?=后)"),
        lambda m: spell_digits(m[0]),
    ),
    (re.compile(rf"(?<=\d:\d\d){_DASH}(?=\d{{1,2}}:\d\d)"), lambda _: "到"),
    (
        re.compile(r"(?<![\d:])(?P<h>[01]?\d|2[0-4]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?![\d:])"),
        _time,
    ),
    (re.compile(r"(?<=\d):(?=\d)"), lambda _: "比"),
    (
        re.compile(rf"(?P<first>{_SIGNED})%?(?:{_DASH}(?P<upto>{_NUMBER}))?\s?(?P<sign>[%‰])"),
        _percent,
    ),
    (
        re.compile(
            rf"(?P<minus>(?<![A-Za-z\d)])[-−])?(?P<currency>{_CURRENCY})\s?(?P<first>{_NUMBER})"
            rf"(?:{_DASH}(?P<upto>{_NUMBER}))?{_SCALE}"
        ),
        _money,
    ),
    (
        re.compile(rf"(?P<first>{_SIGNED})(?:{_DASH}(?P<upto>{_SIGNED}))?\s?(?P<unit>{_UNIT})"),
        _measure,
    ),
    (
        re.compile(r"(?<![\d/.])(\d+)/(\d+)(?![\d/])"),
        lambda m: f"{cardinal(m[2])}分之{cardinal(m[1])}",
    ),
    (re.compile(r"\d+(?:\.\d+){2,}"), lambda m: "点".join(map(cardinal, m[0].split(".")))),
    (re.compile(r"\+(\d{1,3})[\s-]?(?=1[3-9]\d|\d{2,4}-)"), lambda m: f"加{spell_digits(m[1])} "),
    (
        re.compile(rf"({_NUMBERED})(\d{{3,}})(?![\d.,%‰个元块年万千部台人次-])"),
        lambda m: f"{m[1]}{spell_digits(m[2])}",
    ),
    (re.compile(r"(?<!\d)1[3-9]\d{9}(?!\d)"), lambda m: spell_digits(m[0])),
    (re.compile(r"(?<!\d)\d{3,4}(?:-\d{3,8})+(?!\d)"), lambda m: spell_digits(m[0])),
    (re.compile(rf"(?P<first>{_SIGNED}){_DASH}(?P<upto>{_NUMBER})(?!\d)"), _range),
    (re.compile(rf"(?<![\d.,第])2(?P<space>\s?)(?P<measure>[{_MEASURES}])"), _pair),
    (re.compile(r"(?<=[\d一-龥])\s?[x×*]\s?(?=\d)"), lambda _: "乘"),
    (re.compile(_SIGNED), lambda m: _signed(m[0])),
    (re.compile(rf"(?<![A-Za-z]){_UNIT}"), lambda m: UNITS[m[0]]),  # of a price, or of no figure
)
