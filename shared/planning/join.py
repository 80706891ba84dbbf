"""Joins spoken chunks that are too short for an engine to their neighbours; knows lengths only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.planning.chunks import Chunk
from shared.planning.manuscript import Manuscript
from shared.segments import SegmentKind


@dataclass(slots=True)
class _Group:
    """Chunks that become one. `length`: at most so many characters are said of them."""

    chunks: list[Chunk]
    length: int

    @property
    def is_speech(self) -> bool:
        return self.chunks[0].kind is SegmentKind.SPEECH and self.chunks[-1].whole

    def accepts(self, other: "_Group", limit: int) -> bool:
        return self.is_speech and other.is_speech and self.length + 1 + other.length <= limit

    def take(self, other: "_Group") -> None:
        self.chunks += other.chunks
        self.length += 1 + other.length


def join_short(
    manuscript: Manuscript, chunks: Sequence[Chunk], shortest: int, limit: int
) -> Iterator[Chunk]:
    """Join chunks shorter than `shortest` with a neighbour where `limit` (characters) allows.

    A short chunk waits for the one after it; what cannot, goes to the one before it.
    """
    groups: list[_Group] = []
    for chunk in chunks:
        group = _Group([chunk], len(chunk.text))
        if groups and groups[-1].length < shortest and groups[-1].accepts(group, limit):
            groups[-1].take(group)
            continue
        _give_back(groups, shortest, limit)
        groups.append(group)
    _give_back(groups, shortest, limit)
    for group in groups:
        if len(group.chunks) == 1:
            yield group.chunks[0]
        else:
            start, end = group.chunks[0].start, group.chunks[-1].end
            text = manuscript.spoken(start, end)
            yield Chunk(start, end, SegmentKind.SPEECH, text, group.chunks[-1].ends)


def _give_back(groups: list[_Group], shortest: int, limit: int) -> None:
    """Let the last group, when it is still short, go to the one before it."""
    if len(groups) > 1 and groups[-1].length < shortest and groups[-2].accepts(groups[-1], limit):
        groups[-2].take(groups.pop())
