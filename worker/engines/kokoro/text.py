"""Text to Kokoro's token ids, Chinese and English in one breath, with proof that nothing was lost.

Knows the two readers and the model's vocabulary and limit; no sound.
"""
# ruff: noqa: RUF001 - look-alike characters are phonemes here

import re
from collections.abc import Mapping

from shared.errors import UtteranceError
from worker.engines.chinese.phonemes import ChineseReader
from worker.engines.chinese.reading import REVISION as CHINESE_REVISION
from worker.engines.english.reading import REVISION as ENGLISH_REVISION
from worker.engines.hibari_text import HibariText, cut_phonemes
from worker.engines.kokoro.runs import EN, ZH, Run, language_runs, tidy

REVISION = f"{ENGLISH_REVISION}.{CHINESE_REVISION}.2"
MAX_PHONEMES = 400  # the model takes 510, at 1.3 GB instead of 1.1 and a tenth more time a second
_SPOKEN = re.compile(r"[^\W_]")
_BEFORE_MARK = re.compile(r" +(?=[,.;:!?…)])")
_AFTER_OPENING = re.compile(r"(?<=\() +")
_QUOTES = str.maketrans(dict.fromkeys('“”"', " "))  # heard as a syllable before Chinese: 一
# A stop that begins a syllable, but not after s; T is the flap of "meeting".
_STOP = re.compile(r"(?<!s)(?<!sˈ)[ptkT](?=[wj]?[ˈˌ]?[aeiouæɑɔəɛɜɪʊʌAIOQWYᵻɐɚ])")
_LETTER_A = re.compile(r"([\s(“]*)[Aa]([\s,.;:!?…)”]*)")


class MixedText:
    """Both readers: one per process, about a second and 170 MB to load."""

    def __init__(self) -> None:
        self._chinese = ChineseReader()
        self._english = HibariText()
        self._vocabulary: Mapping[str, int] = self._english.vocabulary

    def token_ids(self, text: str, language: str) -> list[list[int]]:
        """Ids for one or more passes of the model, without pads, `MAX_PHONEMES` each at most.

        Raises UtteranceError when a letter, character, figure or sign of the text would not be
        heard. Its message holds code points at most, never text.
        """
        phonemes = self.phonemes(text, language)
        passes = [
            [self._vocabulary[c] for c in piece] for piece in cut_phonemes(phonemes, MAX_PHONEMES)
        ]
        if not passes:
            raise UtteranceError("there is nothing to speak in this text")
        return passes

    def phonemes(self, text: str, language: str) -> str:
        """The whole utterance in the model's notation, whatever its languages."""
        runs = language_runs(tidy(text), language)
        mixed = len({run.language for run in runs}) > 1
        spoken = " ".join(self._run(run, language, mixed=mixed) for run in runs)
        spoken = " ".join(spoken.translate(_QUOTES).split())
        spoken = _AFTER_OPENING.sub("", _BEFORE_MARK.sub("", spoken))
        unknown = {c for c in spoken if c not in self._vocabulary}
        if unknown:
            named = " ".join(f"U+{ord(c):04X}" for c in sorted(unknown)[:8])
            raise UtteranceError(f"sounds that the model does not know: {named}")
        return spoken

    def _run(self, run: Run, language: str, *, mixed: bool) -> str:
        if run.language == ZH or not _SPOKEN.search(run.text):  # signs alone have a Chinese name
            return self._chinese.phonemes(run.text)
        letter = _LETTER_A.fullmatch(run.text) if mixed else None
        if letter and run.language == EN:
            # Between Chinese characters it is the letter, not the article.
            return f"{letter[1]}ˈA{letter[2]}"
        english = self._english.phonemes(run.text)
        return aspirated(english) if language == ZH else english


def aspirated(phonemes: str) -> str:
    """English as it has to be written for who speaks Chinese: party, and not bardy.

    In the notation of Chinese a plain p, t or k is the first sound of Beijing or Dalian; the breath
    that English gives these letters at the start of a syllable goes without saying in its own.
    """
    return _STOP.sub(lambda stop: f"{stop[0].replace('T', 't')}ʰ", phonemes)
