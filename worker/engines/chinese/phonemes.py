"""Chinese characters to Kokoro's phonemes, with proof that none of them was lost.

Knows words (jieba), their pinyin (pypinyin) and the model's notation (misaki); no figures, no
other language, no sound.
"""

import re

import jieba
from misaki.zh import ZHG2P

from shared.errors import UtteranceError
from worker.engines.chinese.reading import HAN, read_aloud

_STRETCH = re.compile(f"[{HAN}]+")
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
        return " ".join(_word(word) for word in self._words.cut(characters))


def _word(word: str) -> str:
    try:
        phonemes: str = ZHG2P.word2ipa(word)
    except (AssertionError, IndexError, KeyError, ValueError) as error:
        named = " ".join(f"U+{ord(c):04X}" for c in word[:8])
        raise UtteranceError(f"characters without a known reading: {named}") from error
    return phonemes.replace(_NOT_SYLLABIC, "")
