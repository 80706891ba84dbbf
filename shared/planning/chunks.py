"""Turns the sentences of one line into chunks: spoken, silent or left out, none of them too long.

Knows lengths and skips; knows nothing of pauses in seconds, parts or jobs.
"""

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, islice

from shared.planning.cut import cut
from shared.planning.manuscript import CLOSERS, IDEOGRAPH, UNSPEAKABLE, WORD, Manuscript
from shared.planning.pieces import Break
from shared.planning.scripts import script_of
from shared.planning.sentences import inner_ends
from shared.segments import SegmentKind

# Over `shape`: foreign letters with what lies between them, or symbols with the space between.
_SKIP = re.compile(r"u++(?:[ \nmdo]+u+)*+[md]*|s(?:[ \nmd]*s)*+[md]*")
_WORD = re.compile(r"[wh]")
_MARKS = re.compile(r"[md]+")
_END_MARK = re.compile(r"\s*([.!?]+)")  # over `plain`, where every script's end marks are alike
_ENDED = re.compile(rf"[.!?…。！？｡．۔؟।॥։⸮;][\"'{CLOSERS}\s]*$")
_CLAUSE_END = re.compile(r"[\s,;:，；：、،]+$")
_FULL_WIDTH = str.maketrans(".!?", "。！？")
_NAMED_SYMBOLS = 3  # at most so many symbols of a run are named


@dataclass(slots=True)
class Chunk:
    """A piece in the making. `whole`: `text` is exactly what is said of `[start, end)`."""

    start: int
    end: int
    kind: SegmentKind
    text: str
    ends: Break
    reason: str = ""
    whole: bool = True


def chunks_of(
    manuscript: Manuscript, start: int, end: int, ends: Break, limit: int
) -> Iterator[Chunk]:
    """Tile one sentence with chunks; the last one ends with `ends`.

    `limit` is the most characters that one spoken chunk may have.
    """
    found: list[Chunk] = []
    begin = start  # everything before it is in `found`
    spoken_from = start
    for skip in _SKIP.finditer(manuscript.shape, start, end):
        if _WORD.search(manuscript.shape, spoken_from, skip.start()):
            found += _spoken(manuscript, begin, skip.start(), Break.WORD, limit)
            begin = skip.start()
        elif found:
            found[-1].end = begin = skip.start()
        reason = _reason(manuscript, skip.start(), skip.end())
        if found and found[-1].reason == reason:
            found[-1].end = skip.end()
        else:
            found.append(Chunk(begin, skip.end(), SegmentKind.SKIP, "", Break.WORD, reason))
        begin = spoken_from = skip.end()
    if _WORD.search(manuscript.shape, spoken_from, end):
        found += _spoken(manuscript, begin, end, ends, limit)
    elif found:
        _keep_end_mark(manuscript, found, spoken_from, end, limit)
        found[-1].end = end
    else:
        found.append(Chunk(start, end, SegmentKind.SILENCE, "", ends))
    found[-1].ends = ends
    yield from found


def _spoken(
    manuscript: Manuscript, start: int, end: int, ends: Break, limit: int
) -> Iterator[Chunk]:
    text = manuscript.spoken(start, end)
    if len(text) <= limit // 2:
        yield Chunk(start, end, SegmentKind.SPEECH, text, ends)
        return
    # A whole aside within brackets counts as one sentence: divide a long one at its own sentences.
    begin = start
    last = start
    for stop in (*inner_ends(manuscript, start, end), end):
        if stop - begin > limit // 2 and last > begin:
            yield from _fitted(manuscript, begin, last, Break.SENTENCE, limit)
            begin = last
        last = stop
    yield from _fitted(manuscript, begin, end, ends, limit)


def _fitted(
    manuscript: Manuscript, start: int, end: int, ends: Break, limit: int
) -> Iterator[Chunk]:
    """Cut what is too long; what a cut leaves without a word goes, unsaid, to its neighbour."""
    text = manuscript.spoken(start, end)
    if len(text) <= limit:
        yield Chunk(start, end, SegmentKind.SPEECH, text, ends)
        return
    waiting: Chunk | None = None
    begin = start
    for stop, kind in (*cut(manuscript, start, end, limit), (end, ends)):
        if _WORD.search(manuscript.shape, begin, stop):
            if waiting:
                yield waiting
                waiting = None
            marks = _MARKS.match(manuscript.shape, begin, stop)  # of a letter said before
            text = manuscript.spoken(marks.end() if marks else begin, stop)
            waiting = Chunk(
                start, stop, SegmentKind.SPEECH, text, kind, whole=start == begin and not marks
            )
            start = stop
        elif waiting:
            waiting.end = start = stop
            waiting.ends = max(waiting.ends, kind)
            waiting.whole = False
        begin = stop
    if waiting:
        yield waiting


def _keep_end_mark(
    manuscript: Manuscript, found: list[Chunk], start: int, end: int, limit: int
) -> None:
    """Say "I like it." of "I like it ☕.": the voice has to fall where the sentence ends.

    The mark is one of the script that the speech ends in, whatever was written after the skip, and
    takes the place of a comma. Speech that has an end of its own gets no second one.
    """
    mark = _END_MARK.match(manuscript.plain, start, end)
    speech = next((one for one in reversed(found) if one.kind is SegmentKind.SPEECH), None)
    if mark is None or speech is None or _ENDED.search(speech.text):
        return
    text = _CLAUSE_END.sub("", speech.text)
    last = manuscript.shape.rfind(IDEOGRAPH, speech.start, speech.end)
    in_ideographs = last > manuscript.shape.rfind(WORD, speech.start, speech.end)
    text += mark[1].translate(_FULL_WIDTH) if in_ideographs else mark[1]
    if len(text) <= limit:
        speech.text = text
        speech.whole = False


def _reason(manuscript: Manuscript, start: int, end: int) -> str:
    """What a skipped run is, each script or symbol named once."""
    shape = manuscript.shape[start:end]
    kind = shape[0]
    distinct = dict.fromkeys(compress(manuscript.text[start:end], map(kind.__eq__, shape)))
    if kind == UNSPEAKABLE:
        return f"unspeakable: {', '.join(dict.fromkeys(map(script_of, distinct)))}"
    named = [unicodedata.name(one, f"U+{ord(one):04X}") for one in islice(distinct, _NAMED_SYMBOLS)]
    more = len(distinct) - len(named)
    return f"symbol: {', '.join(named)}" + (f" and {more} more" if more else "")
