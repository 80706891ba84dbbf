"""Characters with several readings: each has the one that its surroundings ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypinyin import Style, pinyin

from worker.engines.chinese.pinyin import pinyin_of
from worker.engines.chinese.polyphones import _RULES, _USUAL

# Words as the reader divides them; the marked character's reading.
READINGS = {
    "校[长] [长]大": "zhang3 zhang3",
    "头发 很[长]": "chang2",
    "时间 [长] 了": "chang2",
    "他[长] [得] 很 高": "zhang3 de5",
    "[长] 达 十年": "chang2",
    "我 [得] 走 了": "dei3",
    "他 跑[得]快": "de5",
    "他 [得]到 了 奖": "de2",
    "我 [得] 了 第一名": "de2",
    "轻轻[地] 盖 上": "de5",
    "慢慢 [地] 走": "de5",
    "高兴 [地]说": "de5",
    "在 [地]上": "di4",
    "[地] 很大": "di4",
    "目的[地]": "di4",
    "忘不[了] 走 [了]": "liao3 le5",
    "睡不[着] [觉]": "zhao2 jiao4",
    "他 [还] 没 [还] 书": "hai2 huan2",
    "[还] 愿意": "hai2",
    "[重]做 一遍": "chong2",
    "很 [重]": "zhong4",
    "这[行] 字": "hang2",
    "不[行]": "xing2",
    "[为] 人民 服务": "wei4",
    "改名 [为]": "wei2",
    "那 [只]钟 [只]是 慢": "zhi1 zhi3",
    "书[中] 奖励": "zhong1",
    "[中]奖": "zhong4",
    "这[种] 花": "zhong3",
    "我 [种] 花": "zhong4",
    "[调]慢 [调]查": "tiao2 diao4",
    "[倒] 了 一杯 水": "dao4",
    "[教]他 [教]室": "jiao1 jiao4",
    "她 [都] 会 来": "dou1",
    "[切]菜 一[切]": "qie1 qie4",
    "摇滚[乐] 快[乐]": "yue4 le4",
    "[曾]国藩 [曾]经": "zeng1 ceng2",
    "[似]火": "si4",
}


@pytest.mark.parametrize("marked", READINGS)
def test_each_has_the_reading_that_its_surroundings_ask_for(marked: str) -> None:
    words = marked.split()
    found = [
        syllable
        for word, syllables in zip(
            words, pinyin_of([w.translate({91: "", 93: ""}) for w in words]), strict=True
        )
        for syllable, is_marked in zip(syllables, _marks(word), strict=True)
        if is_marked
    ]
    assert " ".join(found) == READINGS[marked]


def _marks(word: str) -> list[bool]:
    marks, inside = [], False
    for character in word:
        if character in "[]":
            inside = character == "["
        else:
            marks.append(inside)
    return marks


@given(st.lists(st.text(alphabet="".join({*_RULES, *_USUAL}), min_size=1, max_size=4), max_size=8))
def test_every_character_has_one_syllable(words: list[str]) -> None:
    read = pinyin_of(words)
    assert [len(syllables) for syllables in read] == [len(word) for word in words]
    assert all(syllable[-1] in "12345" for syllables in read for syllable in syllables)


def test_every_rule_names_a_reading_that_the_character_has() -> None:
    rules = {(c, rule.reading) for c, rules in _RULES.items() for rule in rules}
    for character, reading in rules | set(_USUAL.items()):
        assert reading in readings_of(character), (character, reading)


def readings_of(character: str) -> list[str]:
    [found] = pinyin(character, style=Style.TONE3, heteronym=True, neutral_tone_with_five=True)
    return list(found)
