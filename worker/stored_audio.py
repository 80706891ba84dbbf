"""A segment's stored audio, checked against what was committed. Knows no store."""

import hashlib

from shared.errors import LostAudioError
from shared.ledger.segment_records import SegmentRecord
from worker.assembly.segment_audio import decode_segment
from worker.engines.base import Samples


def samples_of(row: SegmentRecord, data: bytes) -> Samples:
    """The samples in a segment's stored bytes; none of them where the store has no such object.

    Raises LostAudioError, which says what is wrong.
    """
    if not data:
        raise LostAudioError(f"the stored audio of segment {row.index} is missing")
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise LostAudioError(f"the stored audio of segment {row.index} does not match its hash")
    try:
        samples, rate_hz = decode_segment(data)
    except ValueError as error:
        raise LostAudioError(f"the stored audio of segment {row.index}: {error}") from error
    if (len(samples), rate_hz) != (row.samples, row.rate_hz):
        raise LostAudioError(
            f"the stored audio of segment {row.index} has the wrong length or rate"
        )
    return samples


def is_lost(row: SegmentRecord, data: bytes) -> bool:
    """Whether these are not the bytes that were committed for the segment."""
    try:
        samples_of(row, data)
    except LostAudioError:
        return True
    return False
