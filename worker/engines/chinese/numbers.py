"""Writes figures as Chinese characters. Pure; knows neither dates nor units."""

DIGITS = "零一二三四五六七八九"
MAX_CARDINAL_DIGITS = 16  # longer figures are read digit by digit, as card numbers are
_UNITS = ((10**8, "亿"), (10**4, "万"), (1_000, "千"), (100, "百"), (10, "十"))

_TWO, _LEAST_PAIR = 2, 1_000


def spell_digits(figure: str) -> str:
    """`2024` becomes 二零二四; anything but ASCII digits is left out."""
    return "".join(DIGITS[int(c)] for c in figure if c in "0123456789")


def cardinal(figure: str) -> str:
    """`1050` becomes 一千零五十; leading zeros and very long figures are read digit by digit."""
    if len(figure) > MAX_CARDINAL_DIGITS or (len(figure) > 1 and figure[0] == "0"):
        return spell_digits(figure)
    words = _words(int(figure)) or DIGITS[0]
    return words.removeprefix("一") if words.startswith("一十") else words


def number(figure: str) -> str:
    """A cardinal with as many decimals as are written: `3.10` becomes 三点一零."""
    whole, point, decimals = figure.replace(",", "").partition(".")
    read = cardinal(whole or "0")
    return f"{read}点{spell_digits(decimals)}" if point and decimals else read


def _words(value: int) -> str:
    """Any whole number; nothing for 0. What is left of a skipped place is said as one 零.

    Two thousands, myriads or 亿 are 两, as everybody says; two hundreds and tens are 二.
    """
    for unit, name in _UNITS:
        if value >= unit:
            rest = value % unit
            zero = DIGITS[0] if 0 < rest < unit // 10 else ""
            many = "两" if value // unit == _TWO and unit >= _LEAST_PAIR else _words(value // unit)
            return f"{many}{name}{zero}{_words(rest)}"
    return DIGITS[value] if value else ""
