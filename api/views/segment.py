"""A segment as its tenant sees it, without its text, and a page of segments."""

from typing import Literal, Self

from pydantic import Field

from api.views.base import View, duration_s
from shared.ledger.segment_records import SegmentRecord
from shared.segments import SegmentKind, SegmentState


class SegmentView(View):
    """One piece of a job's text. Offsets are characters of the job's whole text."""

    index: int
    part: int
    kind: SegmentKind
    state: SegmentState
    start: int
    end: int
    pause_after_s: float
    reason: str | None = Field(description="why a piece is skipped or silent")
    take: int
    attempts: int
    duration_s: float | None = Field(description="length of its audio, once it is done")
    error: str | None

    @classmethod
    def of(cls, record: SegmentRecord) -> Self:
        """The view of a stored segment."""
        return cls(
            index=record.index,
            part=record.part,
            kind=record.kind,
            state=record.state,
            start=record.start,
            end=record.end,
            pause_after_s=record.pause_after_s,
            reason=record.reason or None,
            take=record.take,
            attempts=record.attempt,
            duration_s=duration_s(record.samples, record.rate_hz),
            error=record.error,
        )


class SegmentPage(View):
    """Segments in the order of the text."""

    object: Literal["list"] = "list"
    data: list[SegmentView]
    next_cursor: str | None
