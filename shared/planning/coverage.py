"""Checks that a plan, or the rows made from it, leave nothing of a text unspoken and unnamed.

Knows only ranges, kinds and texts: it is the judge of the planner, so it shares none of its steps
but the blanking of inline tags.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from shared.planning.manuscript import blank_markup
from shared.segments import SegmentKind

_NO_WORD = re.compile(r"[\W_]+")


class Covering(Protocol):
    """What a piece, or a stored segment, has to show."""

    @property
    def start(self) -> int:
        """Offset of its first character."""
        ...

    @property
    def end(self) -> int:
        """Offset after its last character."""
        ...

    @property
    def kind(self) -> SegmentKind:
        """What becomes of it."""
        ...

    @property
    def text(self) -> str:
        """What is said of it."""
        ...


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A range of the text with something wrong: "gap", "overlap", "unspoken" or "untrue".

    Unspoken: letters or digits in the range are not said, though it is not a SKIP. Untrue: the
    words said are not those of the text. An overlap has the range that is covered twice.
    """

    start: int
    end: int
    problem: str


def uncovered(text: str, pieces: Iterable[Covering]) -> list[Uncovered]:
    """Everything that keeps `pieces`, in their order, from covering `text`; [] when all is well."""
    visible = blank_markup(text)
    problems: list[Uncovered] = []
    position = 0
    for piece in pieces:
        if piece.start > position:
            problems.append(Uncovered(position, piece.start, "gap"))
        elif piece.start < position:
            problems.append(Uncovered(piece.start, min(position, piece.end), "overlap"))
        words = _NO_WORD.sub("", visible[piece.start : piece.end])
        said = _NO_WORD.sub("", piece.text)
        if piece.kind is not SegmentKind.SKIP and words != said:
            silent = len(said) < len(words)
            problems.append(Uncovered(piece.start, piece.end, "unspoken" if silent else "untrue"))
        position = max(position, piece.end)
    if position < len(text):
        problems.append(Uncovered(position, len(text), "gap"))
    elif position > len(text):
        problems.append(Uncovered(len(text), position, "overlap"))
    return problems
