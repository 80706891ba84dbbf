"""What must be true of a job's files: positions, decoded lengths, manifest. Knows no ledger."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import soundfile

from shared.ledger.deliverables import Deliverable
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


def check_audio(file: Deliverable, pieces: Iterable[bytes]) -> Iterator[str]:
    """Whether the stored bytes are those that were committed, and decode to their length."""
    with SpooledTemporaryFile(IN_MEMORY_BYTES) as copy:
        yield from _bytes(file, pieces, copy)
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


def check_manifest(
    file: Deliverable,
    pieces: Iterable[bytes],
    *,
    files: Sequence[Deliverable],
    rows: Sequence[SegmentRecord],
) -> Iterator[str]:
    """Whether the manifest says of every segment and file what the ledger says."""
    with SpooledTemporaryFile(IN_MEMORY_BYTES) as copy:
        yield from _bytes(file, pieces, copy)
        copy.seek(0)
        try:
            told = json.load(copy)
        except ValueError as error:
            yield f"{file.name} is no JSON: {error}"
            return
    audio = [f for f in files if f.kind == "audio"]
    known = [(f.name, f.part, f.size_bytes, f.sha256, f.samples) for f in audio]
    named = [(f["name"], f["part"], f["bytes"], f["sha256"], f["samples"]) for f in told["files"]]
    if sorted(known) != sorted(named):
        yield f"{file.name} names other files than the ledger"
    places = {index: (start, end) for f in audio for index, start, end in f.timeline or ()}
    yield from _segments(file.name, told["segments"], rows, places)
    gaps = [row.index for row in rows if row.state is SegmentState.QUARANTINED]
    if [gap["index"] for gap in told["gaps"]] != gaps:
        yield f"{file.name} names other gaps than the ledger"
    skips = [row.index for row in rows if row.kind is SegmentKind.SKIP]
    if [skip["index"] for skip in told["skips"]] != skips:
        yield f"{file.name} names other skips than the ledger"


def _segments(
    name: str,
    told: Sequence[Mapping[str, Any]],
    rows: Sequence[SegmentRecord],
    places: Mapping[int, tuple[int, int]],
) -> Iterator[str]:
    if len(told) != len(rows):
        yield f"{name} lists {len(told)} segments, the ledger {len(rows)}"
    for entry, row in zip(told, rows, strict=False):
        start_sample, end_sample = places.get(row.index, (None, None))
        expected = {
            "index": row.index,
            "part": row.part,
            "kind": row.kind,
            "state": row.state,
            "start": row.start,
            "end": row.end,
            "start_sample": start_sample,
            "end_sample": end_sample,
            "audio_sha256": row.sha256,
        }
        for field, value in expected.items():
            if entry[field] != value:
                yield f"{name}, segment {row.index}: {field} is {entry[field]}, not {value}"


def _bytes(file: Deliverable, pieces: Iterable[bytes], copy: IO[bytes]) -> Iterator[str]:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        copy.write(piece)
    if copy.tell() != file.size_bytes:
        yield f"{file.name} has {copy.tell()} bytes in the store, not {file.size_bytes}"
    if digest.hexdigest() != file.sha256:
        yield f"{file.name} is not the file that was committed: its hash differs"
