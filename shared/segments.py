"""A segment: one sentence-sized piece of a job, and the states it may pass through."""

from enum import StrEnum

SUSPICIOUS = 2  # leases abandoned in a row: from then on a sentence runs alone


class SegmentKind(StrEnum):
    """What a piece of source text becomes in the audio."""

    SPEECH = "speech"  # spoken by an engine
    SILENCE = "silence"  # punctuation or blank: only its pause is heard
    SKIP = "skip"  # left out by the job's own choice, and named in the manifest


class SegmentState(StrEnum):
    """Where a segment stands. Only the ledger moves it."""

    PENDING = "pending"
    DISPATCHED = "dispatched"
    LEASED = "leased"
    DONE = "done"
    QUARANTINED = "quarantined"
    CANCELLED = "cancelled"


SEGMENT_TRANSITIONS: dict[SegmentState, frozenset[SegmentState]] = {
    SegmentState.PENDING: frozenset(
        {
            SegmentState.DISPATCHED,
            SegmentState.DONE,
            SegmentState.QUARANTINED,  # by late evidence: its lease had run out
            SegmentState.CANCELLED,
        }
    ),
    SegmentState.DISPATCHED: frozenset(
        {
            SegmentState.LEASED,
            SegmentState.PENDING,
            SegmentState.DONE,
            SegmentState.QUARANTINED,
            SegmentState.CANCELLED,
        }
    ),
    SegmentState.LEASED: frozenset(
        {
            SegmentState.LEASED,  # the lease ran out and another worker claimed it
            SegmentState.DONE,
            SegmentState.PENDING,
            SegmentState.QUARANTINED,
            SegmentState.CANCELLED,
        }
    ),
    SegmentState.DONE: frozenset({SegmentState.PENDING}),  # the store has lost its audio
    SegmentState.QUARANTINED: frozenset({SegmentState.PENDING}),  # an explicit retry of the job
    SegmentState.CANCELLED: frozenset({SegmentState.PENDING}),  # the same
}
