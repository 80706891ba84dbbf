"""Holds what a recogniser heard of Chinese, and of Chinese with English words, against the text.

Chinese is compared by characters and by sound: syllables without tones, so that a homophone, or a
character in its traditional form, is no error. Figures count as the characters they are read as.
Knows no recogniser and no voice.
"""

import re
from dataclasses import dataclass

import jiwer
from pypinyin import lazy_pinyin

from worker.engines.chinese.reading import HAN, read_aloud

_NOT_HAN = re.compile(f"[^{HAN}]+")
_RUN = re.compile(f"[{HAN}]+")
_WORD = re.compile(r"[A-Za-z]+")
_ADVERB = re.compile(r"(.)\1地")  # 轻轻地 sounds like 轻轻的, which is how recognisers write it


@dataclass(frozen=True)
class ChineseHearing:
    """Error rates of a transcript: by characters as written, and by the sound of them."""

    cer: float
    cer_by_sound: float
    characters: int


def hold_chinese(text: str, heard: str) -> ChineseHearing:
    """Judge the transcript of a Chinese text."""
    reference, hypothesis = _characters(text), _characters(heard)
    by_sound = jiwer.wer(" ".join(_syllables(reference)), " ".join(_syllables(hypothesis)))
    return ChineseHearing(float(jiwer.cer(reference, hypothesis)), float(by_sound), len(reference))


def missing_words(text: str, *transcripts: str) -> list[str]:
    """English words of a text that none of its transcripts holds, whatever case and spaces."""
    heard = [re.sub(r"[^a-z]", "", transcript.lower()) for transcript in transcripts]
    return [word for word in _WORD.findall(text) if not any(word.lower() in one for one in heard)]


def missing_runs(text: str, heard: str) -> list[str]:
    """Chinese runs of a text that are not heard in order, syllable by syllable."""
    rest = "".join(_syllables(_characters(heard)))
    missing = []
    for run in _RUN.findall(_figures_read(text)):
        sound = "".join(_syllables(run))
        at = rest.find(sound)
        if at < 0:
            missing.append(run)
        else:
            rest = rest[at + len(sound) :]
    return missing


def _characters(text: str) -> str:
    return _NOT_HAN.sub("", _figures_read(text)).replace("两", "二")


def _figures_read(text: str) -> str:
    words, _ = read_aloud(_WORD.sub(" ", text))
    return words


def _syllables(characters: str) -> list[str]:
    return list(lazy_pinyin(_ADVERB.sub(r"\1\1的", characters.replace("两", "二"))))
