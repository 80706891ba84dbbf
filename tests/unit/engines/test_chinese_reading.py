"""Chinese text before it is read: every figure and sign has become characters."""
# ruff: noqa: RUF001 - full-width marks are part of Chinese text

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.engines.chinese.numbers import cardinal, number, spell_digits
from worker.engines.chinese.reading import HAN, PUNCTUATION, read_aloud

CARDINALS = {
    0: "零",
    10: "十",
    12: "十二",
    2: "二",
    200: "二百",
    2_200: "两千二百",
    22_000: "两万两千",
    200_000_000: "两亿",
    20: "二十",
    105: "一百零五",
    110: "一百一十",
    1_005: "一千零五",
    1_050: "一千零五十",
    10_000: "一万",
    10_086: "一万零八十六",
    120_000: "十二万",
    1_000_001: "一百万零一",
    100_000_000: "一亿",
    100_010_000: "一亿零一万",
    1_0000_0000_0001: "一万亿零一",
}


@pytest.mark.parametrize("value", CARDINALS)
def test_cardinals(value: int) -> None:
    assert cardinal(str(value)) == CARDINALS[value]


def value_of(words: str) -> int:
    """A cardinal read back by the rules of Chinese, not by ours."""
    digits = {c: at for at, c in enumerate("零一二三四五六七八九")} | {"两": 2}
    large = myriads = section = digit = 0
    for c in words:
        if c in digits:
            digit = digits[c]
        elif c in "十百千":
            section += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[c]
            digit = 0
        elif c == "万":
            myriads, section, digit = (section + digit) * 10_000, 0, 0
        else:
            large = (large + myriads + section + digit) * 100_000_000
            myriads = section = digit = 0
    return large + myriads + section + digit


@given(st.integers(0, 9_999_9999_9999))
def test_a_cardinal_read_back_is_the_number(value: int) -> None:
    assert value_of(cardinal(str(value))) == value


def test_what_is_no_cardinal_is_spelt() -> None:
    assert cardinal("007") == "零零七"
    assert cardinal("1" * 17) == "一" * 17
    assert number("1,234.50") == "一千二百三十四点五零"
    assert spell_digits("2024") == "二零二四"


READINGS = {
    "2024年3月5日": "二零二四年三月五日",
    "2024-03-05": "二零二四年三月五日",
    "2024/3/5": "二零二四年三月五日",
    "80后": "八零后",
    "95后": "九五后",
    "1990年代": "一九九零年代",
    "2,000人": "两千人",
    "8:00-17:30": "八点整到十七点三十分",
    "39°54′": "三十九度五十四分",
    "116°23'30\"": "一百一十六度二十三分三十秒",
    "5′30″": "五分三十秒",
    "+86 138-1234-5678": "加八六 一三八一二三四五六七八",
    "邮编100000": "邮编一零零零零零",
    "编号:007": "编号:零零七",
    "电话12个": "电话十二个",
    "20年": "二十年",
    "8:30": "八点三十分",
    "8:05": "八点零五分",
    "8:00": "八点整",
    "12:30:15": "十二点三十分十五秒",
    "3:2": "三比二",
    "3.5%": "百分之三点五",
    "-3%": "负百分之三",
    "5%-10%": "百分之五到百分之十",
    "5‰": "千分之五",
    "¥100": "一百元",
    "$3.50万": "三点五零万美元",
    "¥100-200": "一百到二百元",
    "-$5": "负五美元",
    "气温-5°C": "气温负五摄氏度",
    "20℃": "二十摄氏度",
    "10km": "十公里",
    "5~10kg": "五到十公斤",
    "120 km/h": "一百二十公里每小时",
    "50m²": "五十平方米",
    "1/2": "二分之一",
    "¥5 km": "五元 公里",
    "¥100 -5°C": "一百元 负五摄氏度",
    "½": "二分之一",
    "10²": "十的平方",
    "1949—1978年": "一九四九到一九七八年",
    "2.0.1": "二点零点一",
    "13800138000": "一三八零零一三八零零零",
    "010-88886666": "零一零八八八八六六六六",
    "3-5天": "三到五天",
    "2个": "两个",
    "第2个": "第二个",
    "12个": "十二个",
    "2月": "二月",
    "5x3=15": "五乘三等于十五",
    "①": "一",
    "Ⅳ": "四",
    "２０": "二十",
    "人々": "人人",
    "一〇": "一零",
    "5 & 6": "五 和 六",
    "#1": "井号一",
}


@pytest.mark.parametrize("text", READINGS)
def test_figures_and_signs_become_characters(text: str) -> None:
    wide = text.translate({code: code - 0xFEE0 for code in range(0xFF10, 0xFF1A)})
    assert read_aloud(wide) == (READINGS[text], "")


@pytest.mark.parametrize("text", ["a", "é", "я", "ア", "ㄅ", "☃", "😀", "\ue001", "\U000e0fff"])
def test_what_chinese_cannot_read_is_reported_and_not_dropped(text: str) -> None:
    assert read_aloud(f"好{text}")[1] == text


@given(st.text(max_size=60))
def test_only_readable_characters_are_left(text: str) -> None:
    words, _ = read_aloud(text)
    assert re.fullmatch(f"[{HAN}{re.escape(''.join(PUNCTUATION))}]*", words), ascii(words)


@given(st.text(alphabet="0123456789 .,:-/%¥年月日个", max_size=24))
def test_no_figure_is_lost_whatever_is_around_it(text: str) -> None:
    words, unreadable = read_aloud(text)
    assert not unreadable
    for figure in re.findall(r"\d+", text):
        # Each nonzero digit of the figure is said, in its order: twos as 二 or 两.
        said = [c for c in words.replace("两", "二") if c in "一二三四五六七八九"]
        wanted = ["零一二三四五六七八九"[int(c)] for c in figure if c != "0"]
        # 十 of 10 to 19 has no 一
        assert is_within(wanted, said) or (wanted[0] == "一" and is_within(wanted[1:], said))


def is_within(wanted: list[str], said: list[str]) -> bool:
    rest = iter(said)
    return all(c in rest for c in wanted)


@given(st.text(alphabet="0123456789.,:-~/%¥$ 年km", min_size=380, max_size=400))
def test_hostile_text_takes_no_long_time(text: str) -> None:
    read_aloud(text)  # the time limit of the test is the assertion
