"""Plans a job: its text becomes parts, and pieces with kinds and pauses. Pure; knows no ledger."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from shared.errors import UsageError
from shared.jobs import JobSpec, OnUnspeakable
from shared.planning.chapters import chapters_of
from shared.planning.chunks import Chunk, chunks_of
from shared.planning.join import join_short
from shared.planning.lines import lines
from shared.planning.manuscript import Manuscript, read
from shared.planning.pieces import Break, Part, Piece, Plan
from shared.planning.scripts import scripts_of
from shared.planning.sentences import sentence_ends
from shared.segments import SegmentKind


def plan_text(text: str, *, parts: Sequence[Part] | None, spec: JobSpec) -> Plan:
    """Divide a text into parts and pieces, each of which tiles the text.

    `parts` are the chapters that the client gave; None lets `spec.split_chapters` decide between
    looking for headings and one part. A part without text has no piece. Letters that no language
    of the engine is written in are left out when the job says SKIP, and kept when it says REFUSE:
    then they were refused at submit. Time grows with the length of the text, whatever is in it.

    Raises `UsageError` "bad-parts" when `parts` do not tile the text in order.
    """
    skips = spec.on_unspeakable is OnUnspeakable.SKIP
    manuscript = read(text, scripts_of(spec.languages) if skips else None)
    if parts is not None:
        chosen = tuple(parts)
        _check_parts(chosen, len(text))
    elif spec.split_chapters:
        chosen = chapters_of(manuscript)
    else:
        chosen = (Part(0, "", 0, len(text)),)
    pieces = [piece for part in chosen for piece in _pieces(manuscript, part, spec)]
    return Plan(chosen, tuple(pieces))


def _check_parts(parts: Sequence[Part], length: int) -> None:
    edges = [0, *(part.end for part in parts)]
    starts = [*(part.start for part in parts), length]
    numbered = [part.index for part in parts] == list(range(len(parts)))
    if not parts or edges != starts or not numbered or any(a > b for a, b in pairwise(edges)):
        raise UsageError("The parts do not cover the text in order.", code="bad-parts")


def _pieces(manuscript: Manuscript, part: Part, spec: JobSpec) -> Iterator[Piece]:
    chunks = _split(manuscript, part, spec)
    if chunks:
        chunks[-1].ends = Break.PART
    pauses_s = {
        Break.WORD: 0.0,
        Break.CLAUSE: spec.pauses.clause_s,
        Break.SENTENCE: spec.pauses.sentence_s,
        Break.PARAGRAPH: spec.pauses.paragraph_s,
        Break.PART: spec.pauses.chapter_s,
    }
    silent_s = 0.0  # since the last word
    for chunk in chunks:
        pause_s = pauses_s[chunk.ends]
        if chunk.kind is SegmentKind.SPEECH:
            silent_s = 0.0
        elif chunk.kind is SegmentKind.SKIP:
            # What is left out must not leave a hole: the pause before it is the pause after it.
            pause_s = max(0.0, pause_s - silent_s)
        silent_s += pause_s
        yield Piece(
            chunk.start, chunk.end, chunk.kind, chunk.text, pause_s, part.index, chunk.reason
        )


def _split(manuscript: Manuscript, part: Part, spec: JobSpec) -> list[Chunk]:
    limit = max(1, spec.engine_max_chars)
    found: list[Chunk] = []
    begin = part.start
    for line in lines(manuscript, part.start, part.end, spec.newlines):
        if not manuscript.shape[begin : line.end].strip(" \nqdm"):
            # Nothing to see, and so no pause of its own.
            if found:
                found[-1].end = begin = line.end
                found[-1].ends = max(found[-1].ends, line.ends)
            continue
        of_line: list[Chunk] = []
        stops = sentence_ends(manuscript, line.start, line.end, spec.language)
        for stop in stops:
            ends = line.ends if stop == line.end else Break.SENTENCE
            of_line += chunks_of(manuscript, begin, stop, ends, limit)
            begin = stop
        if len(of_line) > 1 and spec.engine_min_chars > 1:
            of_line = list(join_short(manuscript, of_line, spec.engine_min_chars, limit))
        found += of_line
    if begin < part.end:
        found.append(Chunk(begin, part.end, SegmentKind.SILENCE, "", Break.PART))
    return found
