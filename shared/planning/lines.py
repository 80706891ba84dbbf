"""Finds the stretches of text that sentences never cross: paragraphs, and lines where lines count.

Knows line ends, indentation and list markers; knows nothing of sentences.
"""

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from shared.jobs import NewlineMode
from shared.planning.headings import LONGEST_LINE, goes_on, heading_of
from shared.planning.manuscript import CLOSERS, Manuscript
from shared.planning.pieces import Break

# Over `shape`: a line end, then at least one line with nothing to see in it. What indents the next
# line is left to that line.
_BLANK = re.compile(r"(?:\n[ d]*[\nq]|q)(?:[ d]*[\nq])*+")
VISIBLE = re.compile(r"[^ \nqd]")
_NEWLINE = re.compile(r"\n")
# Over `text`, at the start of a line.
_INDENT = re.compile(r"[^\S\n]*")
_MARKER = re.compile(
    r"\s*(?:[-*•‣◦▪]\s|\(?\d{1,3}[.)、．]\s*(?=\D)|\(?[a-z]\)\s|[一二三四五六七八九十]{1,3}、)"
)
_SENTENCE_END = re.compile(rf"[.!?:。！？：…][\"'{CLOSERS}]*\s*$")
_TAIL = 12  # characters looked at for a sentence end
_DEEP = 2  # columns of indentation that mean something
_TAB = 8


@dataclass(frozen=True, slots=True)
class Line:
    """`[start, end)` in the text, white space after it included, and the break that ends it."""

    start: int
    end: int
    ends: Break


def paragraphs(shape: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Each paragraph of a range: its start, the end of its content, the start of the next."""
    position = start
    for blank in _BLANK.finditer(shape, start, end):
        if blank.start() > start:
            yield position, blank.start(), blank.end()
            position = blank.end()
    if position < end:
        yield position, end, end


def lines(manuscript: Manuscript, start: int, end: int, mode: NewlineMode) -> Iterator[Line]:
    """Tile a range with lines. In PROSE a single line end mostly is a space, in LINES never."""
    shape = manuscript.shape
    for first, content_end, after in paragraphs(shape, start, end):
        newlines = _positions(shape, first, content_end)
        if newlines and mode is NewlineMode.PROSE:
            breaks = _breaks_of_prose(manuscript, first, newlines, content_end)
        else:
            breaks = [(at, Break.SENTENCE) for at in newlines]
        position = first
        for at, ends in breaks:
            yield Line(position, at, ends)
            position = at
        yield Line(position, after, Break.PARAGRAPH)


def _positions(shape: str, start: int, end: int) -> list[int]:
    """Where lines start inside a paragraph: just after each line end but leading ones."""
    seen = VISIBLE.search(shape, start, end)
    if seen is None:
        return []
    return [match.end() for match in _NEWLINE.finditer(shape, seen.start(), end)]


def _breaks_of_prose(
    manuscript: Manuscript, start: int, newlines: list[int], end: int
) -> list[tuple[int, Break]]:
    """The few line ends of hard-wrapped prose that are meant: heading, list, verse, indentation."""
    text = manuscript.text
    starts = [start, *newlines]
    headings = _headings(manuscript, starts, end)
    breaks = [(at, Break.PARAGRAPH) for at in newlines[:headings]]
    starts = starts[headings:]
    indents = [_indent(text, at) for at in starts]
    if min(indents) >= _DEEP and all(_begins_like_verse(text, at, end) for at in starts):
        return breaks + [(at, Break.SENTENCE) for at in starts[1:]]
    marked = {at for at in starts if _MARKER.match(text, at, end)}
    for (before, at), (outer, inner) in zip(pairwise(starts), pairwise(indents), strict=True):
        if at in marked and (len(marked) > 1 or text[before:at].rstrip().endswith((":", "："))):
            breaks.append((at, Break.SENTENCE))
        elif (inner >= outer + _DEEP or text.startswith("\u3000", at)) and _SENTENCE_END.search(
            text, max(before, at - _TAIL), at
        ):
            breaks.append((at, Break.PARAGRAPH))
    return breaks


def _headings(manuscript: Manuscript, starts: list[int], end: int) -> int:
    """How many lines at the head of a paragraph are headings, each to stand alone."""
    for count, (start, stop) in enumerate(pairwise(starts)):
        heading = heading_of(manuscript.spoken(start, min(stop, start + 2 * LONGEST_LINE)))
        if not heading:
            return count
        rest = manuscript.spoken(stop, min(end, stop + 2 * LONGEST_LINE))
        if heading.title and goes_on(heading, rest) and not heading_of(rest):
            return count
    return len(starts) - 1


def _indent(text: str, at: int) -> int:
    """Columns of white space at the start of a line; a tab is eight, an ideographic space two."""
    match = _INDENT.match(text, at)
    space = match.group() if match else ""
    return len(space) + (_TAB - 1) * space.count("\t") + space.count("\u3000")


def _begins_like_verse(text: str, at: int, end: int) -> bool:
    """Whether the first letter of a line is a capital, as in most verse set in a book."""
    letter = next((one for one in text[at : min(end, at + 40)] if one.isalpha()), "")
    return letter.isupper()
