"""The books that a storm renders, and what must be heard of each. Pure, and all from a seed.

What is heard of a book is computed here without a farm: from the sentences, the engine's code and
the stitcher. That a calm farm delivers exactly this is checked before the first fault.
"""

import random
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from worker.assembly.pcm import to_int16
from worker.assembly.segment_audio import decode_segment, encode_segment
from worker.assembly.stitch import Clip, Stitcher
from worker.engines.tone import RATE_HZ, utterance_hash
from worker.engines.tone_code import encode

POISONS = ("[[crash]]", "[[fail]]", "[[raise]]", "[[hang]]")
_POISONED_ONE_IN = 5
_REPEATED_ONE_IN = 3
_TIERS = ("rush", "standard", "standard", "bulk", "bulk")
_FORMATS = ("flac", "wav")
_PARAGRAPH_S, _CHAPTER_S = 0.70, 1.50


@dataclass(frozen=True, slots=True)
class Book:
    """A job as it is submitted. `poison` is the sentence that cannot be spoken, if there is one.

    `repeats`: an earlier book has the same text and voice, so its audio may be reused.
    """

    chapters: tuple[tuple[str, ...], ...]
    tier: str
    format: str
    voice: str
    poison: str | None
    reuse: bool
    repeats: bool = False

    @property
    def sentences(self) -> int:
        """How many sentences it has, the poisonous one included."""
        return sum(map(len, self.chapters))

    def body(self) -> dict[str, object]:
        """The request that submits it."""
        chapters = [
            {"title": f"Part {number}", "text": "\n\n".join(sentences)}
            for number, sentences in enumerate(self.chapters, 1)
        ]
        chosen = {"tier": self.tier, "format": self.format, "voice": self.voice}
        return {"chapters": chapters, "engine": "tone", "reuse": self.reuse, **chosen}

    def spoken(self) -> list[list[str]]:
        """The hashes that must be heard, in order, by chapter."""
        return [
            [utterance_hash(s, self.voice, 1.0) for s in sentences if s != self.poison]
            for sentences in self.chapters
        ]

    def pcm(self, chapter: int) -> np.ndarray:
        """A chapter's samples as an undisturbed farm delivers them: int16, shape (samples,)."""
        sentences = self.chapters[chapter]
        clips = [
            Clip(
                index,
                self._said(sentence),
                _CHAPTER_S if index == len(sentences) - 1 else _PARAGRAPH_S,
            )
            for index, sentence in enumerate(sentences)
        ]
        stitcher = Stitcher(in_rate_hz=RATE_HZ, out_rate_hz=RATE_HZ)
        return to_int16(np.concatenate(list(stitcher.blocks(clips))))

    def _said(self, sentence: str) -> np.ndarray:
        if sentence == self.poison:
            return np.zeros(0, np.float32)
        samples = encode(utterance_hash(sentence, self.voice, 1.0), RATE_HZ)
        return decode_segment(encode_segment(samples, RATE_HZ))[0]


def book(seed: int, number: int, *, sentences: int, poisons: tuple[str, ...] = POISONS) -> Book:
    """The book of this number in a storm, with about so many sentences.

    The first one is calm water: plain, to be rendered before the storm. Storms of even seeds reuse
    audio, and every third book repeats the text of the one two before it; no others share a
    sentence.
    """
    dice = random.Random(f"{seed}.{number}")
    reuse = seed % 2 == 0
    if reuse and number % _REPEATED_ONE_IN == 2:
        repeated = book(seed, number - 2, sentences=sentences, poisons=poisons)
        tier, format_ = dice.choice(_TIERS), dice.choice(_FORMATS)
        return replace(repeated, repeats=True, tier=tier, format=format_)
    count = dice.randint(sentences // 2, sentences * 3 // 2)
    lines = [f"Book {number} of storm {seed} says {line} aloud." for line in range(count)]
    poison = None
    if number and poisons and number % _POISONED_ONE_IN == 1:
        poison = f"Book {number} of storm {seed} has {poisons[number // 5 % len(poisons)]} in it."
        lines.insert(dice.randrange(len(lines)), poison)
    parts = min(dice.randint(2, 5), len(lines))
    edges = [0, *sorted(dice.sample(range(1, len(lines)), parts - 1)), len(lines)]
    return Book(
        chapters=tuple(tuple(lines[a:b]) for a, b in pairwise(edges)),
        tier=dice.choice(_TIERS),
        format=dice.choice(_FORMATS),
        voice=dice.choice("abc"),
        poison=poison,
        reuse=reuse,
    )
