"""Text to phoneme ids for hibari's models, with proof that nothing was lost on the way.

Knows hibari's reader and vocabulary, no network and no sound. Whatever the reader would leave out
without a trace is first turned into words; what remains unreadable raises UtteranceError.
"""
# ruff: noqa: RUF001 - look-alike characters are phonemes and quotes here

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

import hibari
from hibari.g2p import G2P
from hibari.g2p.normalize import normalize
from hibari.g2p.token import Tok

from shared.errors import UtteranceError
from worker.engines.english.reading import read_aloud

MAX_PHONEMES = 400  # one pass of the model; measured clean well beyond, but memory grows with it
_ASSETS = Path(hibari.__file__).parent / "assets"
_SILENT_PHONEMES = frozenset(' .,;:!?—…"“”()ˈˌː')
_MUST_SOUND = frozenset("&%@+=$")
_CLAUSE_END = re.compile(r"(?<=[,;:—])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[”\"’)]*\s+")
_PIECE = re.compile(r"\d+|[^\W\d_]+|[&%@+=$]")
_STAND_INS = {"ʀ": "ɹ"}  # the guesser's alphabet is larger than the model's


class HibariText:
    """hibari's reader: one per process, about 0.3 s and 50 MB to load."""

    def __init__(self) -> None:
        self._reader = G2P()
        self.vocabulary: Mapping[str, int] = json.loads(_asset("vocab.json"))
        guesser = json.loads(_asset("oov.json"))
        self._max_word: int = guesser["maxlen"]
        self._letters = frozenset(c for c in guesser["in"] if _is_latin(c))

    def phoneme_ids(self, text: str) -> list[list[int]]:
        """Ids for one or more passes of the model, each with the pad id 0 at both ends.

        Raises UtteranceError as `phonemes` does, and when there is nothing to speak.
        """
        passes = [self._ids(piece) for piece in cut_phonemes(self.phonemes(text), MAX_PHONEMES)]
        if not passes:
            raise UtteranceError("there is nothing to speak in this text")
        return passes

    def phonemes(self, text: str) -> str:
        """The whole text in the notation of the models, marks and spaces included.

        Raises UtteranceError when a letter, number or word of the text would not be heard. Its
        message holds code points at most, never text.
        """
        words, unreadable = read_aloud(
            text, letters=self._letters, known=self._in_lexicon, max_word=self._max_word
        )
        if unreadable:
            raise UtteranceError(f"characters that English cannot read: {_name(unreadable)}")
        return " ".join(filter(None, map(self._sentence, _sentences(words))))

    def _sentence(self, sentence: str) -> str:
        reader = self._reader
        try:
            tokens = reader.phonemize_tokens(reader.tokenize(normalize(sentence)))
        except (IndexError, KeyError, StopIteration, TypeError, ValueError) as error:
            raise UtteranceError(f"the reader failed: {type(error).__name__}") from error
        spoken = "".join(self._heard(t) + (" " if t.whitespace else "") for t in tokens)
        return " ".join("".join(_STAND_INS.get(c, c) for c in spoken).split())

    def _heard(self, token: Tok) -> str:
        """The token's phonemes; a token lost to a wrong part of speech is read again alone."""
        phonemes: str = token.phonemes or ""
        if _sounds(phonemes) or not _must_sound(token.text):
            return phonemes
        alone: str = self._reader(" ".join(_PIECE.findall(token.text)))
        if not _sounds(alone):
            raise UtteranceError(f"the reader would leave out a word: {_name(token.text)}")
        return f" {alone} "

    def _ids(self, phonemes: str) -> list[int]:
        vocabulary = self.vocabulary
        return [0, *(vocabulary[c] for c in phonemes if c in vocabulary), 0]

    def _in_lexicon(self, word: str) -> bool:
        lexicon = self._reader.lexicon
        return any(w in lexicon.golds or w in lexicon.silvers for w in (word, word.lower()))


def cut_phonemes(phonemes: str, limit: int) -> list[str]:
    """Cut at sentence ends, else at clause marks, else at words, else anywhere, under `limit`."""
    pieces: list[str] = []
    for piece in _atoms(phonemes, limit, (_SENTENCE_END, _CLAUSE_END, re.compile(r"\s+"))):
        if pieces and len(pieces[-1]) + 1 + len(piece) <= limit:
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
    return [piece for piece in pieces if _sounds(piece)]


def _atoms(phonemes: str, limit: int, cuts: tuple[re.Pattern[str], ...]) -> Iterator[str]:
    if len(phonemes) <= limit:
        yield phonemes
    elif not cuts:
        yield from (phonemes[i : i + limit] for i in range(0, len(phonemes), limit))
    else:
        for piece in cuts[0].split(phonemes):
            yield from _atoms(piece, limit, cuts[1:])


def _sentences(text: str) -> list[str]:
    return list(hibari.Hibari.split_sentences(text))


def _must_sound(text: str) -> bool:
    return any(c.isalnum() or c in _MUST_SOUND for c in text)


def _sounds(phonemes: str | None) -> bool:
    return any(c not in _SILENT_PHONEMES for c in phonemes or "")


def _is_latin(char: str) -> bool:
    return not char.isascii() and unicodedata.name(char, "").startswith("LATIN")


def _name(text: str) -> str:
    return " ".join(f"U+{ord(c):04X}" for c in text[:8])


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
