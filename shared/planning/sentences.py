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
# One letter, or letters with stops between: more often a name goes on than a sentence ends.
_INITIALS = re.compile(r"(?<![A-Za-z])(?:[A-Za-z]\.)+$")
# Words that the library takes for abbreviations before a name: "Not for me. Harry left."
_MISSED = re.compile(r"(?<![A-Za-z.])(?:ill|may|me|miss|no)\.[\"')\]]*+\s++(?=[\"'(\[]*+[A-Z])")
_OPENING = re.compile(r" \"")
_SMALL = re.compile(r"[^A-Za-z0-9]{0,8}[a-z]")
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
    """Sentence ends inside what the library keeps together, such as an aside in brackets."""
    plain = manuscript.plain
    begin = start
    for match in _INNER_END.finditer(plain, start, end):
        stop = match.end()
        goes_on = not _is_end(plain, begin, stop) or _INITIALS.search(_head(plain, begin, stop))
        if not goes_on and _CONTENT.search(manuscript.shape, begin, stop):
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
        for stop in _library_ends(plain, position, window_end, language):
            if _is_end(plain, begin, stop):
                begin = stop - 1 if _OPENING.match(plain, stop - 2, stop) else stop
                yield begin
        if window_end == end:
            return
        if stop < position + _WINDOW // 2:  # a long sentence: look on from a gap in it
            stop = plain.rfind(" ", position + _WINDOW // 2, window_end) + 1 or window_end
        position = stop


def _library_ends(plain: str, start: int, end: int, language: str) -> Iterator[int]:
    """The library's own sentence ends strictly inside a window, and those it overlooks.

    It would keep together all that lies between two quotes, be they a closing one and the next
    opening one: so it sees none.
    """
    stop = start
    for sentence in sentencex.segment(language, plain[start:end].replace('"', " ")):
        begin, stop = stop, stop + len(sentence)
        for missed in _MISSED.finditer(plain, begin, stop):
            if missed.end() < stop:
                yield missed.end()
        if stop < end:
            yield stop


def _is_end(plain: str, begin: int, stop: int) -> bool:
    """Whether the sentence that began at `begin` really ends at `stop`."""
    head = _head(plain, begin, stop)
    following = plain[stop]
    last = head[-1:]
    if following in ",;:)":
        return False
    if following.islower() and (last != "." or not _SMALL.match(plain, begin)):
        return False  # “No!” he cried; a small letter begins a sentence only where all do
    if last == "." and plain[stop - 1] == "." and following.isalnum():
        return False  # 3.14, example.com
    if _TITLE.search(head) or (_NUMBERED.search(head) and _NUMBER.match(plain, stop)):
        return False
    return not _ENUMERATOR.fullmatch(plain, begin, stop)


def _head(plain: str, begin: int, stop: int) -> str:
    """The last few characters before `stop`, without the white space between."""
    end = stop
    while end > begin and plain[end - 1] == " ":
        end -= 1
    return plain[max(begin, end - _LONGEST_ABBREVIATION) : end]
