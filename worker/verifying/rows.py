"""What must be true of a job's segments by themselves. Pure: knows neither ledger nor store."""

from collections.abc import Iterator, Sequence

from shared.jobs import JobState
from shared.ledger.jobs import JobRecord
from shared.ledger.segment_records import SegmentRecord
from shared.segments import SegmentKind, SegmentState

DELIVERED = frozenset({JobState.COMPLETED, JobState.PARTIAL})
_SETTLED = frozenset({SegmentState.DONE, SegmentState.QUARANTINED})


def check_rows(job: JobRecord, rows: Sequence[SegmentRecord]) -> Iterator[str]:
    """Each thing that is wrong, in words: ranges, and states."""
    yield from _tiling(job, rows)
    for row in rows:
        yield from _one(job, row)
    if job.state is JobState.PARTIAL and not any(
        row.state is SegmentState.QUARANTINED for row in rows
    ):
        yield "the job is partial and has no gap"


def _tiling(job: JobRecord, rows: Sequence[SegmentRecord]) -> Iterator[str]:
    end = 0
    for place, row in enumerate(rows):
        if row.index != place:
            yield f"segment {place} is missing: the next one is {row.index}"
            return
        if row.start != end:
            word = "is left out" if row.start > end else "is there twice"
            low, high = sorted((row.start, end))
            yield f"the text from {low} to {high} {word}, before segment {row.index}"
        end = row.end
    if end != job.characters and job.state in DELIVERED:
        yield f"the segments end at character {end} of {job.characters}"


def _one(job: JobRecord, row: SegmentRecord) -> Iterator[str]:
    if row.kind is not SegmentKind.SPEECH:
        if row.state is not SegmentState.DONE and job.state in DELIVERED:
            yield f"segment {row.index} ({row.kind}) is {row.state}"
        return
    if job.state in DELIVERED and row.state not in _SETTLED:
        yield f"the job is {job.state}, and segment {row.index} is {row.state}"
    if job.state is JobState.COMPLETED and row.state is SegmentState.QUARANTINED:
        yield f"the job is completed, and segment {row.index} was given up"
    if row.state is SegmentState.DONE and (row.object_key is None or row.samples <= 0):
        yield f"segment {row.index} is done and has no audio"
