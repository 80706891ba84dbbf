"""Whether a job's manifest says what the ledger says. Knows no ledger and no store."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

from pydantic import ValidationError

from shared.jobs import JobSpec
from shared.ledger.deliverables import Deliverable
from shared.ledger.jobs import JobRecord
from shared.ledger.segment_records import SegmentRecord
from shared.segments import SegmentKind, SegmentState
from worker.verifying.files import IN_MEMORY_BYTES, check_bytes


def check_manifest(
    file: Deliverable,
    pieces: Iterable[bytes],
    *,
    job: JobRecord,
    files: Sequence[Deliverable],
    rows: Sequence[SegmentRecord],
) -> Iterator[str]:
    """Whether the manifest says of the job, every segment and every file what the ledger says."""
    with SpooledTemporaryFile(IN_MEMORY_BYTES) as copy:
        yield from check_bytes(file, pieces, copy)
        copy.seek(0)
        try:
            told = json.load(copy)
        except ValueError as error:
            yield f"{file.name} is no JSON: {error}"
            return
    try:
        yield from _differences(file.name, told, job, files, rows)
    except (LookupError, TypeError, AttributeError) as error:
        yield f"{file.name} has not the fields of a manifest: {error!r}"


def _differences(
    name: str,
    told: Mapping[str, Any],
    job: JobRecord,
    files: Sequence[Deliverable],
    rows: Sequence[SegmentRecord],
) -> Iterator[str]:
    yield from _job(name, told["job"], job)
    audio = [f for f in files if f.kind == "audio"]
    known = [
        (f.name, f.part, f.format, f.size_bytes, f.sha256, f.samples, f.rate_hz) for f in audio
    ]
    named = [
        (
            f["name"],
            f["part"],
            f["format"],
            f["bytes"],
            f["sha256"],
            f["samples"],
            f["sample_rate_hz"],
        )
        for f in told["files"]
    ]
    if sorted(known) != sorted(named):
        yield f"{name} names other files than the ledger"
    places = {index: (start, end) for f in audio for index, start, end in f.timeline or ()}
    yield from _segments(name, told["segments"], rows, places)
    fallen_back = [r.index for r in rows if r.fallback and r.state is SegmentState.DONE]
    chosen = {
        "gaps": [row.index for row in rows if row.state is SegmentState.QUARANTINED],
        "skips": [row.index for row in rows if row.kind is SegmentKind.SKIP],
        "fallbacks": fallen_back if job.spec.fallback is not None else [],
    }
    for what, indexes in chosen.items():
        if [entry["index"] for entry in told.get(what, ())] != indexes:
            yield f"{name} names other {what} than the ledger"


def _job(name: str, told: Mapping[str, Any], job: JobRecord) -> Iterator[str]:
    known = {
        "id": job.id,
        "title": job.title,
        "metadata": dict(job.metadata),
        "characters": job.characters,
    }
    for field, value in known.items():
        if told[field] != value:
            yield f"{name}: the job's {field} is {told[field]}, not {value}"
    try:
        same = JobSpec.model_validate(told["settings"]) == job.spec
    except ValidationError:
        same = False
    if not same:
        yield f"{name} names other settings of the job than the ledger"


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
            "pause_after_s": row.pause_after_s,
            "take": row.take,
            "audio_sha256": row.sha256,
        }
        for field, value in expected.items():
            if entry[field] != value:
                yield f"{name}, segment {row.index}: {field} is {entry[field]}, not {value}"
