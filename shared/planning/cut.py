"""Cuts a sentence that is longer than an engine takes. Knows characters and marks, not grammar."""

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import ceil

from shared.planning.manuscript import CLOSERS, DROPPED, MARK, UNSPACED, Manuscript
from shared.planning.pieces import Break

_AFTER = rf"[\"'{CLOSERS}’]*"
# Best place first. Group 1 is what the piece before the cut has to hold; the rest is white space.
_PLACES = (
    (
        re.compile(rf"([;:]{_AFTER})\s+|([；：…—―]+{_AFTER})\s*|((?:--+|\.\.\.+){_AFTER})\s*"),
        Break.CLAUSE,
    ),
    (re.compile(rf"(,{_AFTER})\s+|([，、]+{_AFTER})\s*"), Break.CLAUSE),
    (
        re.compile(rf"([^\s.])\s+|([{UNSPACED}])(?=\w)(?![ー々ゝゞヽヾ])|(\w)(?=[{UNSPACED}])"),
        Break.WORD,
    ),
    (re.compile(r"(\.)\s+"), Break.WORD),  # an abbreviation: "Mr." had better not end a piece
)
_EXTRA_SPACE = re.compile(r"(?<=\s)\s+")
_VIRAMA = 9  # canonical combining class
_JAMO = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff]")  # vowels and finals of a Hangul syllable


def cut(manuscript: Manuscript, start: int, end: int, limit: int) -> Iterator[tuple[int, Break]]:
    """Offsets that divide a range so that no piece says more than `limit` characters.

    Pieces come out about equally long, so that no tail of two characters is left: with n pieces
    needed, each cut lies between half and one and a half times an n-th, at a clause mark or else
    between words. Only where that would part a word the whole length allowed is looked at; only a
    word longer than the limit is parted, and only a letter longer than that with all its marks.
    """
    widths = _widths(manuscript, start, end)
    total = widths[-1]
    begin = 0
    while (left := total - widths[begin]) > limit:
        ideal = left / ceil(left / limit)
        base = widths[begin]
        target = start + bisect_left(widths, base + ceil(ideal))
        for least, most in ((ceil(ideal / 2), int(min(limit, left - ideal / 2))), (1, limit)):
            low = start + bisect_left(widths, base + least)
            high = start + bisect_right(widths, base + most) - 1
            best = _best(manuscript, low, high, target)
            if best:
                break
        else:
            best = _inside_word(manuscript, low, high, target), Break.WORD
        yield best
        begin = best[0] - start


def _widths(manuscript: Manuscript, start: int, end: int) -> Sequence[int]:
    """`widths[i]`: at most so many characters are said of the first i; extra space counts 0."""
    text, shape = manuscript.text[start:end], manuscript.shape[start:end]
    counts = bytearray(b"\1") * len(text)
    for extra in _EXTRA_SPACE.finditer(text):
        counts[extra.start() : extra.end()] = bytes(len(extra.group()))
    if DROPPED in shape:
        for at, kind in enumerate(shape):
            if kind == DROPPED:
                counts[at] = 0
    return [0, *accumulate(counts)]


def _best(manuscript: Manuscript, low: int, high: int, target: int) -> tuple[int, Break] | None:
    """The cut nearest to `target` at the best kind of place in `[low, high]`."""
    for pattern, kind in _PLACES:
        found = [
            match.end()
            for match in pattern.finditer(manuscript.text, low - 1, high + 1)
            if low <= match.end(match.lastindex or 0) <= high
        ]
        if found:
            return min(found, key=lambda at: abs(at - target)), kind
    return None


def _inside_word(manuscript: Manuscript, low: int, high: int, target: int) -> int:
    """The place nearest to `target` that does not part a letter from its marks, or else `high`."""
    for distance in range(max(target - low, high - target) + 1):
        for at in (target - distance, target + distance):
            if low <= at <= high and _is_between_characters(manuscript, at):
                return at
    return high


def _is_between_characters(manuscript: Manuscript, at: int) -> bool:
    """Whether a reader sees two characters left and right of `at`, not one with its marks."""
    text = manuscript.text
    return (
        manuscript.shape[at] not in {MARK, DROPPED}
        and not _JAMO.match(text, at)
        and unicodedata.combining(text[at - 1]) != _VIRAMA
    )
