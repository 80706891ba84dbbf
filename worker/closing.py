"""The last step of a job: write its manifest and end it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator

from shared import object_keys
from shared.crashpoints import crash_point
from shared.farm import Farm
from shared.jobs import JobSpec
from shared.ledger import deliverables, jobs
from shared.ledger.deliverables import Deliverable
from shared.ledger.segment_records import SegmentRecord
from shared.ledger.steps import StepClaim
from shared.ledger.tables import WHOLE_JOB
from shared.segments import SegmentKind, SegmentState
from worker.assembly.manifest import Omission, SegmentEntry, Substitution, manifest_json
from worker.assembly.multipart import write_bytes
from worker.step_progress import StepLease, drop_unknown, rows_of
from worker.uploading import upload_to

MANIFEST_NAME = "manifest.json"


def close_job(farm: Farm, claimed: StepClaim) -> None:
    """Write manifest.json, record it, and end the job as completed or partial."""
    tenant, _spec = farm.database.read(lambda conn: jobs.read_spec(conn, claimed.job_id))
    record = farm.database.read(lambda conn: jobs.get(conn, tenant, claimed.job_id))
    files = farm.database.read(
        lambda conn: deliverables.of_job(conn, claimed.job_id, timelines=True)
    )
    placed = {index: (start, end) for f in files for index, start, end in f.timeline or ()}
    lease = StepLease(farm, claimed)
    key = object_keys.deliverable(tenant, claimed.job_id, claimed.id, claimed.token, MANIFEST_NAME)
    digest = hashlib.sha256()
    pieces = manifest_json(
        job={
            "id": record.id,
            "title": record.title,
            "metadata": dict(record.metadata),
            "characters": record.characters,
            "settings": record.spec.model_dump(mode="json"),
        },
        files=map(_file_entry, files),
        skips=_omissions(farm, claimed, lease.progress, _is_skip),
        gaps=_omissions(farm, claimed, lease.progress, _is_gap),
        fallbacks=_substitutions(farm, claimed, lease.progress, record.spec),
        segments=(
            _segment_entry(row, placed.get(row.index))
            for row in rows_of(farm, claimed, lease.progress)
        ),
    )
    with upload_to(farm.store, key, "application/json", lease.waiting) as upload:
        size_bytes = write_bytes(_hashed(pieces, digest.update), upload)
    crash_point("manifest.stored")
    manifest = Deliverable(
        part=WHOLE_JOB,
        kind="manifest",
        name=MANIFEST_NAME,
        format="json",
        content_type="application/json",
        object_key=key,
        size_bytes=size_bytes,
        sha256=digest.hexdigest(),
        samples=0,
        rate_hz=0,
    )

    if not farm.database.transact(lambda conn: deliverables.commit_job(conn, claimed, manifest)):
        drop_unknown(farm, key)
    crash_point("manifest.committed")
    farm.postman.send_due()


def _hashed(pieces: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for piece in pieces:
        update(piece)
        yield piece


def _is_skip(row: SegmentRecord) -> bool:
    return row.kind is SegmentKind.SKIP


def _is_gap(row: SegmentRecord) -> bool:
    return row.state is SegmentState.QUARANTINED


def _omissions(
    farm: Farm,
    claimed: StepClaim,
    progress: Callable[[], None],
    chosen: Callable[[SegmentRecord], bool],
) -> Iterator[Omission]:
    for row in rows_of(farm, claimed, progress):
        if chosen(row):
            reason = row.reason or row.error or ""
            yield Omission(row.index, row.part, row.start, row.end, reason)


def _substitutions(
    farm: Farm, claimed: StepClaim, progress: Callable[[], None], spec: JobSpec
) -> Iterator[Substitution]:
    if spec.fallback is None:
        return
    for row in rows_of(farm, claimed, progress):
        if row.fallback and row.state is SegmentState.DONE:
            yield Substitution(row.index, row.part, row.start, row.end, spec.fallback.engine)


def _segment_entry(row: SegmentRecord, placed: tuple[int, int] | None) -> SegmentEntry:
    start_sample, end_sample = placed if placed is not None else (None, None)
    return SegmentEntry(
        index=row.index,
        part=row.part,
        kind=row.kind,
        state=row.state,
        start=row.start,
        end=row.end,
        start_sample=start_sample,
        end_sample=end_sample,
        pause_after_s=row.pause_after_s,
        take=row.take,
        # A loss takes a token, as falling back does, and is no claim.
        attempts=row.token - row.losses - row.fallback,
        audio_sha256=row.sha256,
    )


def _file_entry(file: Deliverable) -> dict[str, object]:
    return {
        "part": file.part,
        "name": file.name,
        "format": file.format,
        "bytes": file.size_bytes,
        "sha256": file.sha256,
        "samples": file.samples,
        "sample_rate_hz": file.rate_hz,
    }
