"""Writes figures as Chinese characters. Pure; knows neither dates nor units."""

DIGITS = "零一二三四五六七八九"
MAX_CARDINAL_DIGITS = 16  # longer figures are read digit by digit, as card numbers are
_PLACES = ("", "十", "百", "千")
_GROUPS = ("", "万", "亿", "万亿")


def spell_digits(figure: str) -> str:
    """`2024` becomes 二零二四; anything but ASCII digits is left out."""
    return "".join(DIGITS[int(c)] for c in figure if c in "0123456789")


def cardinal(figure: str) -> str:
    """`1050` becomes 一千零五十; leading zeros and very long figures are read digit by digit."""
    if len(figure) > MAX_CARDINAL_DIGITS or (len(figure) > 1 and figure[0] == "0"):
        return spell_digits(figure)
    if int(figure) == 0:
        return DIGITS[0]
    groups = []
    rest = int(figure)
    while rest:
        rest, group = divmod(rest, 10_000)
        groups.append(group)
    words, gap = "", False
    for place in reversed(range(len(groups))):
        group = groups[place]
        if group:
            zero = words and (gap or group < 1_000)  # noqa: PLR2004 - a place is skipped
            words += (DIGITS[0] if zero else "") + _group(group) + _GROUPS[place]
        gap = not group
    return words.removeprefix("一") if words.startswith("一十") else words


def number(figure: str) -> str:
    """A cardinal with as many decimals as are written: `3.10` becomes 三点一零."""
    whole, point, decimals = figure.replace(",", "").partition(".")
    read = cardinal(whole or "0")
    return f"{read}点{spell_digits(decimals)}" if point and decimals else read


def _group(value: int) -> str:
    """1 to 9999."""
    words, gap = "", False
    for place in reversed(range(4)):
        digit = value // 10**place % 10
        if digit:
            words += (DIGITS[0] if gap and words else "") + DIGITS[digit] + _PLACES[place]
        gap = not digit
    return words
