"""The vocabulary of a plan: pieces, parts and what ends a piece. Knows nothing of how to split."""

from dataclasses import dataclass
from enum import IntEnum

from shared.segments import SegmentKind


class Break(IntEnum):
    """What ends a piece, weakest first; a stronger break is followed by a longer pause."""

    WORD = 0  # cut for length between words, or inside one: no pause at all
    CLAUSE = 1  # cut for length at a clause mark
    SENTENCE = 2
    PARAGRAPH = 3
    PART = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of the job's text and what becomes of it.

    `start` and `end` are offsets in characters into the whole job text. The pieces of a plan tile
    it: each starts where the one before it ends. `text` is what the engine is asked to say, with
    runs of white space collapsed, and "" unless `kind` is SPEECH. `pause_after_s` is silence in
    seconds. `reason` names what a SKIP leaves out ("unspeakable: Han", "symbol: HOT BEVERAGE").
    """

    start: int
    end: int
    kind: SegmentKind
    text: str
    pause_after_s: float
    part: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A chapter, or the whole text: `[start, end)` in characters. Parts tile the job's text."""

    index: int
    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a job's text becomes, in order."""

    parts: tuple[Part, ...]
    pieces: tuple[Piece, ...]
