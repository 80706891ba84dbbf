"""Finds chapters by their headings and tells a table of contents from the chapters themselves.

Knows paragraphs and heading lines; knows nothing of sentences or pauses.
"""

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from shared.planning.headings import LONGEST_LINE, Heading, goes_on, heading_of, is_title
from shared.planning.lines import VISIBLE, paragraphs
from shared.planning.manuscript import CLOSERS, Manuscript, read
from shared.planning.pieces import Part

FRONT_MATTER = "Front matter"
_TITLE_LINES = 3  # a heading paragraph with more lines is a list, or runs into its text
_LONGEST_TITLE = 240
_LEAST_BODY = 200  # characters: this much text is a body even without a full stop
_SMALL_BODY = 600  # a chapter this small, found again later, is a description in the contents
_SENTENCE_END = re.compile(rf"[.!?。！？…][\"'’{CLOSERS}]*\s*(?:\n|\u2029|$)")
_LINE_END = re.compile(r"\n|$")


@dataclass(frozen=True, slots=True)
class _Found:
    """A heading where it stands: the paragraph's start, the start of its body, its full title."""

    start: int
    body: int
    heading: Heading
    title: str


def find_chapters(text: str) -> tuple[Part, ...]:
    """The parts of a book by its headings; they tile the text.

    A heading starts a paragraph: "CHAPTER 12 ...", "Chapter XII", "PART ONE", "EPILOGUE",
    "第十二章 ...". Headings with next to nothing under them are a table of contents, which stays in
    the front matter, or, just before a chapter, the part or book that begins with it. What precedes
    the first chapter is a part of its own when there is a word in it. A text without headings is
    one part without a title.
    """
    return chapters_of(read(text))


def chapters_of(manuscript: Manuscript) -> tuple[Part, ...]:
    """`find_chapters` for a text already read."""
    end = len(manuscript.text)
    opened = list(_opened(manuscript, list(_headings(manuscript))))
    if not opened:
        return (Part(0, "", 0, end),)
    first, _ = opened[0]
    if re.search("[whu]", manuscript.shape[:first]):
        opened.insert(0, (0, FRONT_MATTER))
    else:
        opened[0] = (0, opened[0][1])
    stops = [*(start for start, _ in opened[1:]), end]
    return tuple(
        Part(index, title, start, stop)
        for index, ((start, title), stop) in enumerate(zip(opened, stops, strict=True))
    )


def _headings(manuscript: Manuscript) -> Iterator[_Found]:
    """Every heading, in order, tables of contents included."""
    waiting: _Found | None = None  # a bare heading whose title may be the next paragraph
    for start, content_end, after in paragraphs(manuscript.shape, 0, len(manuscript.text)):
        found = _heading_at(manuscript, start, content_end, after)
        if waiting and not found and content_end - start <= _LONGEST_TITLE:
            line = manuscript.spoken(start, content_end)
            if is_title(line):
                title = f"{waiting.title} {line}"
                waiting = _Found(waiting.start, after, waiting.heading, title)
        if waiting:
            yield waiting
            waiting = None
        if found and not found.heading.title and found.body == after:
            waiting = found
        elif found:
            yield found
    if waiting:
        yield waiting


def _heading_at(manuscript: Manuscript, start: int, end: int, after: int) -> _Found | None:
    """The heading that a paragraph begins with."""
    seen = VISIBLE.search(manuscript.shape, start, end)
    begin = seen.start() if seen else start
    match = _LINE_END.search(manuscript.text, begin, end)
    first_end = match.start() if match else end
    if first_end - begin > 2 * LONGEST_LINE:
        return None
    line = manuscript.spoken(begin, first_end)
    heading = heading_of(line)
    if heading is None:
        return None
    if first_end >= end:
        return _Found(start, after, heading, line)
    rest = manuscript.text[first_end + 1 : min(end, first_end + 1 + _LONGEST_TITLE)]
    further = [" ".join(one.split()) for one in rest.split("\n")]
    if heading_of(further[0]):
        return None  # a list of headings
    short = end - first_end <= _LONGEST_TITLE and len(further) < _TITLE_LINES
    if short and goes_on(heading, " ".join(further)):
        title = manuscript.spoken(begin, end) if heading.title else " ".join((line, *further))
        return _Found(start, after, heading, title)
    return _Found(start, first_end + 1, heading, line)


def _opened(manuscript: Manuscript, found: list[_Found]) -> Iterator[tuple[int, str]]:
    """Where chapters start, with titles: headings with a body, plus the parts they open."""
    still_to_come = Counter(one.heading.key for one in found)
    ends = [*(one.start for one in found), len(manuscript.text)][1:]
    bare: list[_Found] = []  # headings without a body, just before this one
    listed: set[int] = set()  # their ranks
    for one, end in zip(found, ends, strict=True):
        still_to_come[one.heading.key] -= 1
        again = still_to_come[one.heading.key] > 0
        size = end - one.body
        body = manuscript.text[one.body : min(end, one.body + 2 * _LEAST_BODY)].strip()
        has_body = len(body) >= _LEAST_BODY or bool(_SENTENCE_END.search(body))
        rank = one.heading.rank
        if not has_body or (again and (rank in listed or size < _SMALL_BODY)):
            bare.append(one)
            listed.add(rank)
            continue
        opens = [one]
        while bare and bare[-1].heading.rank < opens[0].heading.rank:
            opens.insert(0, bare.pop())
        bare.clear()
        listed.clear()
        yield opens[0].start, ", ".join(each.title for each in opens)
