"""Finds where sentences end inside one line. Knows no lengths and no paragraphs.

Letters are left to the `sentencex` library, which is shown the ASCII likeness of the text: on other
input it can panic (German, U+3000) and takes time that grows with the square of the length. Han and
kana, which put no space after a sentence, are cut here at their full stops. Then come the guards:
what the library gets wrong in books.
"""

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

import re
from collections.abc import Iterator

import sentencex

from shared.planning.manuscript import CLOSERS, UNSPACED, Manuscript
from shared.planning.scripts import primary

_WINDOW = 1_000  # characters shown to the library at once: bounds its time, not its sentences
_UNSPACED_END = re.compile(
    rf"(?:(?<![。！？｡!?])[。！？｡]|(?<=[{UNSPACED}])[.．!?](?![.0-9A-Za-z])"
    rf"|[!?](?=[{UNSPACED}]))[。！？｡!?]*+"
    rf"[{CLOSERS}’]*+(?P<quote>\"?+)\s*+(?![，、；：,;:…—{CLOSERS}])"
)
# Over `plain`: something that could end a sentence, and something after it. Every pattern here
# begins where the character before it differs and never gives back, so that each is linear.
_MAYBE = re.compile(r"(?<=[.!?\"')\]])\s++\S")
_INNER_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+\s++(?=[\"'(\[]*+[A-Z0-9])")
_CONTENT = re.compile(r"[whus]")  # over `shape`

# Abbreviations after which a sentence goes on whatever follows ...
_TITLE = re.compile(
    r"(?<![A-Za-z])(?:Mr|Mrs|Ms|Messrs|Mme|Mlle|Dr|Prof|Rev|Hon|St|Mt|Ft|Gen|Col|Maj|Capt|Cmdr|Lt"
    r"|Sgt|Cpl|Pvt|Adm|Gov|Sen|Rep|Pres|Supt|Insp|[eE]\.g|[iI]\.e|viz|vs|[cC]f|approx)\.$"
)
# ... and those that take a number, a date or a name after them.
_NUMBERED = re.compile(
    r"(?<![A-Za-z])(?:Nos?|[vV]ols?|pp?|[cC]h|[sS]ec|[fF]igs?|[aA]rt|[eE]d|Jan|Feb|Mar|Apr|Jun|Jul"
    r"|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)\.$"
)
_NUMBER = re.compile(r"[0-9]|[IVXLCDM]+\b|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w*\b")
_ENUMERATOR = re.compile(r"\s*\(?(?:[0-9]{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)]\s*")
_LONGEST_ABBREVIATION = 12


def sentence_ends(manuscript: Manuscript, start: int, end: int, language: str) -> list[int]:
    """Offsets at which the sentences of a line end, white space included; the last one is `end`.

    A stretch with nothing to say (a lone quote, an ellipsis) stays with the sentence before it.
    """
    ends: list[int] = []
    begin = start
    for stop in _candidates(manuscript, start, end, primary(language)):
        if _CONTENT.search(manuscript.shape, begin, stop):
            ends.append(stop)
            begin = stop
        elif ends:
            ends[-1] = begin = stop
    if ends and (begin == end or not _CONTENT.search(manuscript.shape, begin, end)):
        ends[-1] = end
    else:
        ends.append(end)
    return ends


def inner_ends(manuscript: Manuscript, start: int, end: int) -> Iterator[int]:
    """Sentence ends inside what the library keeps together, such as a speech within quotes."""
    plain = manuscript.plain
    begin = start
    for match in _INNER_END.finditer(plain, start, end):
        stop = match.end()
        if (
            stop < end
            and _is_end(plain, begin, stop)
            and _CONTENT.search(manuscript.shape, begin, stop)
        ):
            yield stop
            begin = stop


def _candidates(manuscript: Manuscript, start: int, end: int, language: str) -> Iterator[int]:
    text, plain = manuscript.text, manuscript.plain
    position = counted = start
    quotes = 0
    for match in _UNSPACED_END.finditer(text, start, end):
        stop = match.end()
        if match["quote"]:
            # A straight quote after a full stop closes what was open, or opens what comes next.
            quotes += text.count('"', counted, match.end("quote"))
            counted = match.end("quote")
            if quotes % 2:
                stop = match.start("quote")
        yield from _alphabetic_ends(plain, position, stop, language)
        yield stop
        position = stop
    yield from _alphabetic_ends(plain, position, end, language)


def _alphabetic_ends(plain: str, start: int, end: int, language: str) -> Iterator[int]:
    """Ends found by the library strictly inside a range, guarded."""
    begin = position = start
    while maybe := _MAYBE.search(plain, position, end):
        position = max(position, maybe.start() - _WINDOW // 2)
        window_end = min(position + _WINDOW, end)
        stop = position
        for sentence in sentencex.segment(language, plain[position:window_end])[:-1]:
            stop += len(sentence)
            if _is_end(plain, begin, stop):
                yield stop
                begin = stop
        if window_end == end:
            return
        if stop < position + _WINDOW // 2:  # a long sentence: look on from a gap in it
            stop = plain.rfind(" ", position + _WINDOW // 2, window_end) + 1 or window_end
        position = stop


def _is_end(plain: str, begin: int, stop: int) -> bool:
    """Whether the sentence that began at `begin` really ends at `stop`."""
    head = plain[max(begin, stop - _LONGEST_ABBREVIATION) : stop].rstrip()
    following = plain[stop]
    if not head or following in ",;:)":
        return False
    last = head[-1]
    if following.islower() and last != ".":
        return False  # “No!” he cried
    if last == "." and plain[stop - 1] == "." and following.isalnum():
        return False  # 3.14, example.com
    if _TITLE.search(head) or (_NUMBERED.search(head) and _NUMBER.match(plain, stop)):
        return False
    return not _ENUMERATOR.fullmatch(plain, begin, stop)
