"""Sentences of two languages: each stretch read in its own, and all of it heard."""
# ruff: noqa: RUF001 - full-width marks and phonemes are the subject here

import contextlib
import itertools
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import UtteranceError
from shared.planning import plan_text
from shared.segments import SegmentKind
from tests.factories import job_spec
from worker.engines.chinese.phonemes import ChineseReader
from worker.engines.hibari_text import HibariText
from worker.engines.kokoro import MAX_CHARS, MIN_CHARS
from worker.engines.kokoro.runs import language_runs, tidy
from worker.engines.kokoro.text import MixedText

ROOT = Path(__file__).parents[3]
MIXED = "benchmarks/texts/mixed-40.txt"


@pytest.fixture
def text() -> MixedText:
    return shared_text()


RUNS = {
    "我用 Python 写代码。": "zh:我用 |en:Python |zh:写代码.",
    "我有 3 个苹果": "zh:我有 3 个苹果",
    "iPhone 15 发布了": "en:iPhone 15 |zh:发布了",
    "iPhone 15 Pro很贵": "en:iPhone 15 Pro|zh:很贵",
    "iPhone 15 is here": "en:iPhone 15 is here",
    "于 GitHub 2024 年发布": "zh:于 |en:GitHub |zh:2024 年发布",
    "GPT-4和3D打印": "en:GPT-4|zh:和|en:3D|zh:打印",
    "A股涨了3.5%": "en:A|zh:股涨了3.5%",
    "他说：“Hello!”然后": "zh:他说: |en:“Hello!”|zh:然后",
    "距离10km，speed 10km/h": "zh:距离10km, |en:speed 10km/h",
    "见 https://x.org/a?b=1 吧": "zh:见 |en:https://x.org/a?b=1 |zh:吧",
    "AT&T和C++都行": "en:AT&T|zh:和|en:C++|zh:都行",
    "The fee is $5, 他付了 $20。": "en:The fee is $5, |zh:他付了 $20.",
    "价格（price）是¥5": "zh:价格|en:(price)|zh:是¥5",
    "1, 2, 3.": "zh:1, 2, 3.",
    "①打开，②Save as": "zh:①打开, ②|en:Save as",
    "速度是1.5x，很快": "zh:速度是|en:1.5x, |zh:很快",
    "第1、234页": "zh:第1, 234页",
    "拨110，120": "zh:拨110, 120",
    "好。OK。Yes！No；A": "zh:好. |en:OK. Yes! No; A",
    "David：Hi？他": "en:David: Hi? |zh:他",
    "比分3：2": "zh:比分3:2",
    "用iPhone。Android不行": "zh:用|en:iPhone. Android|zh:不行",
}


@pytest.mark.parametrize("words", RUNS)
def test_each_stretch_goes_to_its_own_reader(words: str) -> None:
    runs = language_runs(tidy(words), "zh")
    assert "|".join(f"{run.language}:{run.text}" for run in runs) == RUNS[words]


def test_where_no_letter_decides_the_utterance_does() -> None:
    assert [run.language for run in language_runs("1, 2, 3.", "en")] == ["en"]


@given(st.text(max_size=60), st.sampled_from(["zh", "en"]))
def test_runs_are_the_text(words: str, language: str) -> None:
    tidied = tidy(words)
    runs = language_runs(tidied, language)
    assert "".join(run.text for run in runs) == tidied
    assert all(a.language != b.language for a, b in itertools.pairwise(runs))


@given(st.text(alphabet="a1中.,-/:%$ '\"(“々°km", min_size=200, max_size=240))
def test_hostile_text_takes_no_long_time(words: str) -> None:
    language_runs(tidy(words), "zh")  # the time limit of the test is the assertion


def test_both_languages_are_one_utterance(text: MixedText) -> None:
    [ids] = text.token_ids("我用 Python 写代码。", "zh")
    assert text.phonemes("我用 Python 写代码。", "zh") == "wo↓jʊ↘ŋ pʰˈIθˌɑn ɕje↓ tai↘ma↓."
    assert len(ids) == len("wo↓jʊ↘ŋ pʰˈIθˌɑn ɕje↓ tai↘ma↓.")


def test_english_in_chinese_has_its_breath_written_and_in_english_has_not(text: MixedText) -> None:
    words = "A party, a speech, a story, meeting, paper, coffee, a plan."
    english = text.phonemes(words, "en")
    assert english == HibariText().phonemes(words)
    assert "ʰ" not in english
    chinese = text.phonemes(words, "zh")
    for breath in ("pʰˈɑɹ", "mˈitʰɪŋ", "pʰˈApʰəɹ", "kʰˈɔf"):
        assert breath in chinese
    for none in ("spˈiʧ", "stˈɔɹ", "plˈæn"):
        assert none in chinese


def test_english_is_read_as_the_english_engine_reads_it(text: MixedText) -> None:
    words = "Dr. Marsh paid $3.50 on 3 March 2024, and that's 20% more."
    assert text.phonemes(words, "en") == HibariText().phonemes(words).replace(" ,", ",")


HEARD = {
    "3个": "sa→nkɤ↘",
    "2024年": "ɚ↘li↗ŋɚ↘sɨ↘njɛ↗n",
    "第3-5章": "ti↘sa→n tau↘ u↓ꭧa→ŋ",
    "银行行长": "i↗nxa↗ŋxa↗ŋꭧa↓ŋ",
    "A股": "ˈA ku↓",
    "a dog": "ɐ dˈɔɡ",
    "人々": "ɻə↗nɻə↗n",
    "2024年底": "ɚ↘li↗ŋɚ↘sɨ↘njɛ↗n ti↓",
    "调慢": "tʰjau↗ma↘n",
    "轻轻地盖上": "ʨʰi→ŋʨʰi→ŋtɤ kai↘ʂa↘ŋ",
    "“好，”他说。": "xau↓, tʰa→ ʂwo→.",
    "《书》": "ʂu→",
}


@pytest.mark.parametrize("words", HEARD)
def test_readings(text: MixedText, words: str) -> None:
    assert text.phonemes(words, "zh") == HEARD[words]


ODD = (
    "我们 今天 Python GPT-4 3D 2024年 3.5% -5°C ¥100 $9.99 8:30 A B2B 10km 第2章 1/2 API "
    "https://x.org ２０ 〇 Ⅳ α 5G e.g. C++ 上海 OK？ 《书》 “Go” （好） #1 @小王 & + = / 2.0.1"
)


@given(st.lists(st.sampled_from(ODD.split()), min_size=2, max_size=6))
def test_odd_words_are_all_heard_in_each_others_company(words: list[str]) -> None:
    text = shared_text()

    def sounds(part: str) -> int:
        try:
            return sum(len(ids) for ids in text.token_ids(part, "zh"))
        except UtteranceError:  # punctuation alone
            return 0

    assert sounds(" ".join(words)) >= 0.6 * sum(map(sounds, words)) - 4


@given(st.text(max_size=60), st.sampled_from(["zh", "en"]))
def test_any_text_is_read_or_refused_and_never_breaks_the_readers(
    words: str, language: str
) -> None:
    with contextlib.suppress(UtteranceError):
        assert all(ids for ids in shared_text().token_ids(words, language))


@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
def test_every_character_sounds_or_is_refused(characters: str) -> None:
    text = shared_text()
    alone = []
    for character in characters:
        try:
            alone.append(text.phonemes(character, "zh"))
        except UtteranceError:
            alone.append("")
    if not all(alone):
        with pytest.raises(UtteranceError):
            text.phonemes(characters, "zh")
        return
    # Words may be read otherwise than their characters, but each character is a syllable.
    together = text.phonemes(characters, "zh").replace(" ", "")
    assert len(together) >= 0.5 * sum(map(len, alone))


def test_the_dictionary_is_not_taken_from_the_shared_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "jieba.cache").write_bytes(b"somebody else's")
    assert ChineseReader().phonemes("你好")
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"]
    assert (tmp_path / "jieba.cache").read_bytes() == b"somebody else's"


@pytest.mark.parametrize("sign", "%‰&@#+=×÷±<>≤≥≈∞°$€£¥℃→")
@pytest.mark.parametrize("words", ["{} 好", "好 {}", "a {}", "{} a", "好 {} a", "a{}好", "{}"])
def test_no_sign_is_silent(text: MixedText, sign: str, words: str) -> None:
    without = words.format("").split()
    bare = text.phonemes(" ".join(without), "zh") if without else ""
    assert len(text.phonemes(words.format(sign), "zh")) > len(bare) + 1


@pytest.mark.parametrize("name", ["samples/chinese.txt", "samples/mixed.txt", MIXED])
def test_the_samples_are_spoken_sentence_by_sentence_in_one_pass(
    text: MixedText, name: str
) -> None:
    words = (ROOT / name).read_text()
    spec = job_spec(
        languages=("zh", "en"),
        language="zh",
        engine_max_chars=MAX_CHARS,
        engine_min_chars=MIN_CHARS,
    )
    plan = plan_text(words, parts=None, spec=spec)
    assert [piece.text for piece in plan.pieces if piece.kind is SegmentKind.SKIP] == []
    spoken = [piece.text for piece in plan.pieces if piece.kind is SegmentKind.SPEECH]
    assert len(spoken) >= 10
    assert all(len(text.token_ids(piece, "zh")) == 1 for piece in spoken)


@cache
def shared_text() -> MixedText:
    """For properties, which take no fixture of a wider scope without complaint."""
    return MixedText()
