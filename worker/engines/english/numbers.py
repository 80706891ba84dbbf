"""Reads figures that a number reader would cut short or trip over. Pure; money is done before.

Left alone: what hibari reads whole (cardinals, years, ordinals, times, dates, fractions, ranges).
Rewritten: leading zeros (007), decimals with all their digits (3.10), dotted versions (2.0.1),
figures too long for words, commas that group nothing (1,5), minus and times signs.
"""
# ruff: noqa: RUF001 - look-alike characters are the subject of this module

import re

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
MAX_CARDINAL_DIGITS = 15  # longer figures are read digit by digit, as card numbers are

_SEPARATORS = (
    (re.compile(r"(?<=\d)_(?=\d)"), ""),  # 1_000
    (re.compile(r"(?<=\d)['’](?=\d{3}(?!\d))"), ","),  # 1'000
    (re.compile(r"(?<=\d) (?=000(?!\d))"), ","),  # 10 000
    (re.compile(r"(?<=\d)[eE](?=[-−+]?\d)"), " e "),  # 1e-5
    (re.compile(r"(?<![\d:])(\d+):(\d)(?![\d:])"), r"\1 to \2"),  # 16:9, but not 16:09
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_COMMAS = re.compile(r"\d+(?:,\d+)+")
_DOTTED = re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}(?![\d.]*\d)")
_UNIT = (
    r"(?:[kcm]?m|[km]?g|lbs?|oz|ft|mi|ml|[km]ph|km/h|[kMG]?Hz|[kKMGT]B|[MG]bps|hrs?|mins?|secs?|ms"
    r"|sq|yd|[kMG]Wh?|mAh|fps|cc|mcg|[nµ]m|pct)\b"
)
_DECIMAL = re.compile(rf"(?<![\d.])(\d[\d,]*)?\.(\d+)(?!\d)(?P<unit>\s?{_UNIT})?")
_LONG = re.compile(r"\d[\d,]*\d")
_DASHED = re.compile(r"(?<![\d.,:/])\d+(?:-\d+)*(?![\d.,:/]*\d)")
_KEPT_DASHED = re.compile(r"\d{4}-\d\d-\d\d|(?:\d{3}-)?\d{3}-\d{4}")  # ISO dates, phone numbers
_MINUS = re.compile(r"(?<![\w)])[-−–‐‑](?=\.?\d)|−")
_TIMES = re.compile(r"(?<=[\d)])\s?[*·]\s?(?=[\d(])|(?<=\d)\s?[x×]\s?(?=\d)")
_POWER = re.compile(r"⁻?[⁰¹²³⁴-⁹]+")
_FRACTION = re.compile(r"(?<=\d)(?=[¼½¾⅐-⅞])")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def read_numbers(text: str) -> str:
    """`v3.10` becomes `v3 point one zero`; `007` becomes `zero zero seven`."""
    for separator, replacement in _SEPARATORS:
        text = separator.sub(replacement, text)
    text = _FRACTION.sub(" and ", text)
    text = _POWER.sub(_power, text)
    text = _TIMES.sub(" times ", text)
    text = _MINUS.sub(" minus ", text)
    text = _DOTTED.sub(lambda m: m.group().replace(".", " point "), text)
    text = _DECIMAL.sub(_decimal, text)
    text = _COMMAS.sub(_commas, text)
    text = _DASHED.sub(_leading_zeros, text)
    return _LONG.sub(_long, text)


def spell_digits(figure: str) -> str:
    """`10` becomes `one zero`; anything but ASCII digits is left out."""
    return " ".join(DIGITS[int(c)] for c in figure if c in "0123456789")


def _decimal(match: re.Match[str]) -> str:
    whole, digits, unit = match[1], match[2], match["unit"]
    read = f"{whole} point " if whole else "point "
    if unit:  # the reader knows units behind a figure only
        return f"{read}{spell_digits(digits[:-1])} {digits[-1]}{unit}"
    return _apart(match, f"{read}{spell_digits(digits)}")


def _power(match: re.Match[str]) -> str:
    figure = match.group().translate(_SUPERSCRIPTS)
    return {"2": " squared ", "3": " cubed "}.get(figure, f" to the power of {figure} ")


def _commas(match: re.Match[str]) -> str:
    figure = match.group()
    return figure if _GROUPED.fullmatch(figure) else figure.replace(",", ", ")


def _leading_zeros(match: re.Match[str]) -> str:
    run = match.group()
    if _KEPT_DASHED.fullmatch(run):
        return run
    parts = [spell_digits(p) if len(p) > 1 and p[0] == "0" else p for p in run.split("-")]
    return _apart(match, "-".join(parts))


def _long(match: re.Match[str]) -> str:
    figure = match.group().replace(",", "")
    if len(figure) <= MAX_CARDINAL_DIGITS:
        return match.group()
    return _apart(match, spell_digits(figure))


def _apart(match: re.Match[str], words: str) -> str:
    """Words in the place of figures, with a space where a letter or figure follows or precedes."""
    if words == match.group():
        return words
    before = match.string[match.start() - 1 : match.start()]
    after = match.string[match.end() : match.end() + 1]
    return f"{' ' if before.isalnum() else ''}{words}{' ' if after.isalnum() else ''}"
