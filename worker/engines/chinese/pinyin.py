"""Words to pinyin, a syllable for each character: the dictionary first, then the surroundings.

Knows pypinyin's phrases and the rules for what they leave open; no segmentation, no phonemes.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from pypinyin import Style, lazy_pinyin
from pypinyin.seg.mmseg import seg

from worker.engines.chinese.polyphones import Place, reading_of

_PARTICLES = ("得", "了", "着", "过")  # what follows a verb belongs to it, whatever the words


def pinyin_of(words: Sequence[str]) -> list[list[str]]:
    """For each word its syllables, the tone as a figure at their end, 5 where it is neutral.

    `words` joined are a stretch without marks. A character without a known reading stays itself.
    """
    text = "".join(words)
    starts = [0, *accumulate(map(len, words))]
    befores = ["", *words]
    return [
        list(_of_word(text, start, before, word))
        for start, before, word in zip(starts, befores, words, strict=False)
    ]


def _of_word(text: str, start: int, before: str, word: str) -> Iterator[str]:
    at = 0
    for piece in seg.cut(word):
        if len(piece) > 1:
            yield from _usual(piece)
        else:
            right = text[start + at + 1 :]
            ends = at + 1 == len(word) > 1
            place = Place(
                left=text[: start + at],
                right="" if ends and not right.startswith(_PARTICLES) else right,
                previous=before,
                first=at == 0,
                alone=len(word) == 1,
            )
            yield reading_of(piece, place) or _usual(piece)[0]
        at += len(piece)


def _usual(piece: str) -> list[str]:
    return lazy_pinyin(piece, style=Style.TONE3, neutral_tone_with_five=True)
