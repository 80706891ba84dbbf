"""Chinese characters to Kokoro's phonemes, with proof that none of them was lost.

Knows words (jieba) and the model's notation of pinyin (misaki); no figures, no other language, no
sound. Tones are written as the dictionary has them: how they change beside one another (不是, 你好)
the model has learnt from text in this very notation.
"""

import re
from collections.abc import Iterator, Sequence

import jieba
from misaki.zh import ZHG2P

from shared.errors import UtteranceError
from worker.engines.chinese.pinyin import pinyin_of
from worker.engines.chinese.reading import HAN, read_aloud

_STRETCH = re.compile(f"[{HAN}]+")
_SPELT = re.compile("[零一二三四五六七八九]{4,}(?:年(?!代))?")  # 二零二四年: no word list has these
_LONGEST_GROUP = 5
_NOT_SYLLABIC = "\u032f"  # the mark under a diphthong's second vowel: the model knows none


class ChineseReader:
    """One per process: about 0.7 s and 130 MB for the dictionary of words."""

    def __init__(self) -> None:
        # Built from the package's own dictionary: jieba would else unmarshal whatever it finds
        # under a fixed name in the machine's shared folder of temporary files.
        self._words = jieba.Tokenizer()
        self._words.FREQ, self._words.total = self._words.gen_pfdict(self._words.get_dict_file())
        self._words.initialized = True

    def phonemes(self, text: str) -> str:
        """Phonemes of a Chinese stretch: words with spaces between, marks where they stood.

        Raises UtteranceError when a character would not be heard. Its message holds code points.
        """
        words, unreadable = read_aloud(text)
        if unreadable:
            named = " ".join(f"U+{ord(c):04X}" for c in unreadable[:8])
            raise UtteranceError(f"characters that Chinese cannot read: {named}")
        return _STRETCH.sub(lambda found: f" {self._stretch(found.group())} ", words)

    def _stretch(self, characters: str) -> str:
        words = [word for part in _parts(characters) for word in self._words_of(part)]
        return " ".join(
            _word(word, syllables) for word, syllables in zip(words, pinyin_of(words), strict=True)
        )

    def _words_of(self, part: str) -> list[str]:
        return [part] if _SPELT.fullmatch(part) else list(self._words.cut(part))


def _parts(characters: str) -> Iterator[str]:
    """Figures that were spelt out stay in one piece, long ones in groups of three and four."""
    at = 0
    for spelt in _SPELT.finditer(characters):
        if at < spelt.start():
            yield characters[at : spelt.start()]
        yield from _groups(spelt.group())
        at = spelt.end()
    if at < len(characters):
        yield characters[at:]


def _groups(spelt: str) -> Iterator[str]:
    first = len(spelt) if len(spelt) <= _LONGEST_GROUP else len(spelt) % 4 or 4
    yield spelt[:first]
    for at in range(first, len(spelt), 4):
        yield spelt[at : at + 4]


def _word(word: str, syllables: Sequence[str]) -> str:
    try:
        phonemes = "".join(ZHG2P.py2ipa(syllable) for syllable in syllables)
    except (AssertionError, IndexError, KeyError, ValueError) as error:
        named = " ".join(f"U+{ord(c):04X}" for c in word[:8])
        raise UtteranceError(f"characters without a known reading: {named}") from error
    return phonemes.replace(_NOT_SYLLABIC, "")
