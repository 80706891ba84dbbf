"""Reads amounts of money out as words. Pure; decimals that are left are another module's work."""
# ruff: noqa: RUF001 - look-alike characters are the subject of this module

import re
from dataclasses import dataclass

NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"


@dataclass(frozen=True, slots=True)
class _Unit:
    one: str
    many: str
    hundredth: str = ""
    hundredths: str = ""


_UNITS = {
    "$": _Unit("dollar", "dollars", "cent", "cents"),
    "£": _Unit("pound", "pounds", "penny", "pence"),
    "€": _Unit("euro", "euros", "cent", "cents"),
    "₹": _Unit("rupee", "rupees", "paisa", "paise"),
    "¢": _Unit("cent", "cents"),
    "¥": _Unit("yen", "yen"),
    "₩": _Unit("won", "won"),
    "₽": _Unit("ruble", "rubles"),
    "₺": _Unit("lira", "lira"),
    "₿": _Unit("bitcoin", "bitcoins"),
    "₪": _Unit("shekel", "shekels"),
    "₴": _Unit("hryvnia", "hryvnias"),
    "₦": _Unit("naira", "naira"),
    "₱": _Unit("peso", "pesos"),
    "₫": _Unit("dong", "dong"),
    "฿": _Unit("baht", "baht"),
    "₸": _Unit("tenge", "tenge"),
    "₵": _Unit("cedi", "cedis"),
}
_COUNTRIES = {
    "US": "U.S.",
    "CA": "Canadian",
    "C": "Canadian",
    "AU": "Australian",
    "A": "Australian",
    "NZ": "New Zealand",
    "HK": "Hong Kong",
    "S": "Singapore",
}
_SCALES = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion"}
_SCALES |= {"tn": "trillion", "tr": "trillion"}
_SYMBOL = f"[{''.join(map(re.escape, _UNITS))}]"
_SCALE = r"(?:\s?(?P<scale>(?i:hundred|thousand|million|billion|trillion|bn|mn|tn|tr|k|m|b))\b)?"
_COUNTRY = rf"(?:\b(?P<country>{'|'.join(_COUNTRIES)}))?"
_BEFORE = re.compile(
    rf"(?P<minus>(?<![\w)])[-−–])?{_COUNTRY}(?P<symbol>{_SYMBOL})\s?(?P<number>{NUMBER})"
    rf"(?:\s?[-–]\s?{_SYMBOL}?(?P<upto>{NUMBER}))?{_SCALE}(?P<per>/(?=[a-z]))?"
)
_AFTER = re.compile(rf"(?<![\w.])(?P<number>{NUMBER})\s?(?P<symbol>{_SYMBOL})(?!\s?\d)")
_DECIMAL_COMMA = re.compile(rf"(?<={_SYMBOL})(\s?\d+),(\d\d)(?![\d,])")
_CENTS = re.compile(r"(.*)\.(\d\d)")


def read_money(text: str) -> str:
    """`$5.50` becomes `5 dollars and 50 cents`; `US$3 million` `3 million U.S. dollars`."""
    text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    text = _BEFORE.sub(_before, text)
    return _AFTER.sub(lambda m: _amount(m["number"], _UNITS[m["symbol"]]), text)


def _before(match: re.Match[str]) -> str:
    unit = _UNITS[match["symbol"]]
    scale = (match["scale"] or "").lower()
    scale = _SCALES.get(scale, scale)
    country = f"{_COUNTRIES[match['country']]} " if match["country"] else ""
    number, upto = match["number"], match["upto"]
    if scale or upto or country:
        count = f"{number} to {upto}" if upto else number
        singular = number == "1" and not scale and not upto
        words = f"{count} {scale} {country}{unit.one if singular else unit.many}"
    else:
        words = _amount(number, unit)
    sign = " minus " if match["minus"] else " "
    per = " per " if match["per"] else ""
    return f"{sign}{words}{per}"


def _amount(number: str, unit: _Unit) -> str:
    cents = _CENTS.fullmatch(number) if unit.hundredths else None
    if cents is None:
        return f"{number} {unit.one if number == '1' else unit.many}"
    whole, part = cents[1] or "0", int(cents[2])
    small = f"{part} {unit.hundredth if part == 1 else unit.hundredths}"
    if part == 0:
        return _amount(whole, unit)
    return small if whole == "0" else f"{_amount(whole, unit)} and {small}"
