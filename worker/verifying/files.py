"""What must be true of a job's files: positions, hashes, decoded lengths. Knows no ledger."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import IO

import soundfile

from shared.ledger.deliverables import Deliverable
from shared.ledger.jobs import JobRecord
from shared.ledger.segment_records import SegmentRecord
from shared.segments import SegmentKind, SegmentState

IN_MEMORY_BYTES = 32 * 1024 * 1024
_BLOCK = 1 << 18  # samples decoded at a time


def check_timeline(file: Deliverable, rows: Sequence[SegmentRecord]) -> Iterator[str]:
    """Whether every spoken segment of the file's part is in it once, in order, and inside it."""
    placed = file.timeline or []
    expected = [
        row.index
        for row in rows
        if row.part == file.part
        and row.kind is SegmentKind.SPEECH
        and row.state is SegmentState.DONE
    ]
    found = [index for index, _, _ in placed]
    for index in sorted(set(expected) - set(found)):
        yield f"{file.name} does not hold segment {index}"
    for index in sorted(set(found) - set(expected)):
        yield f"{file.name} holds segment {index}, which is not of its part"
    if sorted(found) != found or len(set(found)) != len(found):
        yield f"{file.name} holds segments twice or out of order"
    before = 0
    for index, start, end in placed:
        if not before <= start < end <= file.samples:
            yield f"{file.name}: segment {index} lies at {start} to {end} of {file.samples} samples"
        before = end


def check_settings(file: Deliverable, job: JobRecord) -> Iterator[str]:
    """Whether a file is of the format and rate that its job asked for."""
    wanted = (job.spec.format, job.spec.sample_rate_hz)
    if (file.format, file.rate_hz) != wanted:
        yield (
            f"{file.name} is {file.format} at {file.rate_hz} Hz, "
            f"and the job wanted {wanted[0]} at {wanted[1]} Hz"
        )


def check_audio(file: Deliverable, pieces: Iterable[bytes]) -> Iterator[str]:
    """Whether the stored bytes are those that were committed, and decode to their length."""
    with SpooledTemporaryFile(IN_MEMORY_BYTES) as copy:
        yield from check_bytes(file, pieces, copy)
        copy.seek(0)
        try:
            with soundfile.SoundFile(copy) as audio:
                samples = 0
                while block := len(audio.read(_BLOCK, dtype="float32")):
                    samples += block
                rate_hz = audio.samplerate
        except soundfile.SoundFileError as error:
            yield f"{file.name} cannot be decoded: {error}"
            return
        if (samples, rate_hz) != (file.samples, file.rate_hz):
            yield (
                f"{file.name} decodes to {samples} samples at {rate_hz} Hz, "
                f"not {file.samples} at {file.rate_hz}"
            )


def check_bytes(file: Deliverable, pieces: Iterable[bytes], copy: IO[bytes]) -> Iterator[str]:
    """Whether these are the bytes that were committed; they are written to `copy`."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        copy.write(piece)
    if copy.tell() != file.size_bytes:
        yield f"{file.name} has {copy.tell()} bytes in the store, not {file.size_bytes}"
    if digest.hexdigest() != file.sha256:
        yield f"{file.name} is not the file that was committed: its hash differs"
