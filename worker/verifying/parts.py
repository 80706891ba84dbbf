"""What must be true of a job's text, parts and totals. Pure: knows neither ledger nor store."""

from collections import Counter
from collections.abc import Iterator, Sequence

from shared.ledger.deliverables import PartRecord
from shared.ledger.jobs import JobRecord
from shared.ledger.segment_records import SegmentRecord
from shared.segments import SegmentKind, SegmentState


def check_text(job: JobRecord, text_characters: int | None) -> Iterator[str]:
    """Whether the text is there, in its length; None: it is not there."""
    if text_characters is None:
        yield "the text is gone, and the job has not expired"
    elif text_characters != job.characters:
        yield f"the text has {text_characters} characters, not {job.characters}"


def check_parts(
    job: JobRecord, parts: Sequence[PartRecord], rows: Sequence[SegmentRecord]
) -> Iterator[str]:
    """Of a delivered job: its parts tile the text and hold the segments, as often as it counts."""
    yield from _tiling(job, parts)
    known = {part.index: part for part in parts}
    for row in rows:
        part = known.get(row.part)
        if part is None:
            yield f"segment {row.index} is of part {row.part}, which is not there"
        elif not part.start <= row.start <= row.end <= part.end:
            yield (
                f"segment {row.index} ({row.start} to {row.end}) lies outside of "
                f"part {row.part} ({part.start} to {part.end})"
            )
    spoken = [row for row in rows if row.kind is SegmentKind.SPEECH]
    there = Counter(row.part for row in spoken)
    gaps = Counter(row.part for row in spoken if row.state is SegmentState.QUARANTINED)
    for part in parts:
        has, lacks = there[part.index], gaps[part.index]
        if has != part.segments_total:
            yield f"part {part.index} counts {part.segments_total} segments and has {has}"
        if lacks != part.quarantined:
            yield f"part {part.index} counts {part.quarantined} gaps and has {lacks}"
    yield from _totals(job, parts, rows)


def _tiling(job: JobRecord, parts: Sequence[PartRecord]) -> Iterator[str]:
    end = 0
    for place, part in enumerate(parts):
        if part.index != place:
            yield f"part {place} is missing: the next one is {part.index}"
            return
        if part.start != end:
            yield f"part {part.index} starts at character {part.start}, not {end}"
        end = part.end
    if end != job.characters:
        yield f"the parts end at character {end} of {job.characters}"


def _totals(
    job: JobRecord, parts: Sequence[PartRecord], rows: Sequence[SegmentRecord]
) -> Iterator[str]:
    told = job.progress
    if told.segments_done + told.segments_quarantined != told.segments_total:
        yield (
            f"the job counts {told.segments_done} segments as done and "
            f"{told.segments_quarantined} as gaps, of {told.segments_total}"
        )
    if told.parts_done != told.parts_total:
        yield f"the job counts {told.parts_done} parts as done, of {told.parts_total}"
    counted = {
        "parts": (told.parts_total, len(parts)),
        "segments": (
            told.segments_total,
            sum(row.kind is SegmentKind.SPEECH for row in rows),
        ),
        "skips": (told.segments_skipped, sum(row.kind is SegmentKind.SKIP for row in rows)),
    }
    for what, (total, there) in counted.items():
        if total != there:
            yield f"the job counts {total} {what} and has {there}"
