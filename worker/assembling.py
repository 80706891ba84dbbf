"""The assemble step: stitch, encode and upload one part; at the end of a job, its manifest.

A part is assembled while others render. Everything streams: segments are fetched a little ahead,
decoded, stitched and encoded into a multipart upload; nothing is kept on disk.
"""

import hashlib
import logging
import re
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from shared import object_keys
from shared.crashpoints import crash_point
from shared.errors import FatalError
from shared.farm import Farm
from shared.jobs import JobSpec
from shared.ledger import deliverables, jobs, segment_records, steps
from shared.ledger.deliverables import Deliverable, PartRecord
from shared.ledger.segment_records import SegmentRecord
from shared.ledger.steps import StepClaim
from shared.ledger.tables import WHOLE_JOB
from shared.segments import SegmentKind, SegmentState
from shared.storage import MultipartUpload
from worker.assembly.encoders import CONTENT_TYPES, encoder_for
from worker.assembly.manifest import Omission, SegmentEntry, Substitution, manifest_json
from worker.assembly.multipart import write_audio, write_bytes
from worker.assembly.segment_audio import decode_segment
from worker.assembly.stitch import Clip, Stitcher

log = logging.getLogger(__name__)

PAGE = 500  # segment rows read at a time
AHEAD = 8  # segment objects fetched ahead of the encoder
FETCHERS = 4
MANIFEST_NAME = "manifest.json"


class StepLostError(FatalError):
    """Another worker holds this step, or the job has ended: stop, and change nothing."""


def run_assemble(farm: Farm, claimed: StepClaim) -> None:
    """Assemble one part, or close the job when the step is the whole job's."""
    try:
        if claimed.part == WHOLE_JOB:
            _close_job(farm, claimed)
        else:
            _assemble_part(farm, claimed)
    except StepLostError:
        log.info("step %s of job %s is another's now", claimed.id, claimed.job_id)


def _assemble_part(farm: Farm, claimed: StepClaim) -> None:
    tenant, spec = farm.database.read(lambda conn: jobs.read_spec(conn, claimed.job_id))
    parts = farm.database.read(lambda conn: deliverables.parts(conn, claimed.job_id))
    name = _file_name(parts[claimed.part], len(parts), spec)
    key = object_keys.deliverable(tenant, claimed.job_id, claimed.token, name)
    stitcher = Stitcher(in_rate_hz=spec.engine_rate_hz, out_rate_hz=spec.sample_rate_hz)
    lease = _Lease(farm, claimed)
    with _upload(farm, key, CONTENT_TYPES[spec.format]) as upload:
        size_bytes = write_audio(
            stitcher.blocks(_clips(farm, claimed, lease.progress)),
            encoder_for(spec.format, spec.sample_rate_hz),
            upload,
        )
    crash_point("assemble.stored")
    file = Deliverable(
        part=claimed.part,
        kind="audio",
        name=name,
        format=spec.format,
        content_type=CONTENT_TYPES[spec.format],
        object_key=key,
        size_bytes=size_bytes,
        sha256=_sha256_of_stored(farm, key, size_bytes, lease.progress),
        samples=stitcher.total_samples,
        rate_hz=spec.sample_rate_hz,
        timeline=[
            [p.index, p.start_sample, min(p.end_sample, stitcher.total_samples)]
            for p in stitcher.placed
        ],
    )
    committed = farm.database.transact(lambda conn: deliverables.commit_part(conn, claimed, file))
    crash_point("assemble.committed")
    if not committed.won:
        farm.store.delete([key])
    elif committed.step_id is not None:
        farm.dispatcher.send_steps([committed.step_id])


def _close_job(farm: Farm, claimed: StepClaim) -> None:
    tenant, _spec = farm.database.read(lambda conn: jobs.read_spec(conn, claimed.job_id))
    record = farm.database.read(lambda conn: jobs.get(conn, tenant, claimed.job_id))
    files = farm.database.read(
        lambda conn: deliverables.of_job(conn, claimed.job_id, timelines=True)
    )
    placed = {index: (start, end) for f in files for index, start, end in f.timeline or ()}
    lease = _Lease(farm, claimed)
    key = object_keys.deliverable(tenant, claimed.job_id, claimed.token, MANIFEST_NAME)
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
            for row in _rows(farm, claimed, lease.progress)
        ),
    )
    with _upload(farm, key, "application/json") as upload:
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
        farm.store.delete([key])
    crash_point("manifest.committed")


class _Lease:
    """Renews the step's lease as work moves on, at most three times in a lease's length."""

    def __init__(self, farm: Farm, claimed: StepClaim) -> None:
        self._farm = farm
        self._claimed = claimed
        self._renewed_at = time.monotonic()

    def progress(self) -> None:
        """Call with every bit of progress. Raises StepLostError."""
        lease_s = self._farm.settings.lease_s
        if time.monotonic() - self._renewed_at < lease_s / 3:
            return
        if not self._farm.database.transact(
            lambda conn: steps.renew(conn, self._claimed, lease_s=lease_s)
        ):
            raise StepLostError
        self._renewed_at = time.monotonic()


@contextmanager
def _upload(farm: Farm, key: str, content_type: str) -> Iterator[MultipartUpload]:
    """A multipart upload that is completed at the end of the block, or aborted on any error."""
    upload = farm.store.open_multipart(key, content_type=content_type)
    try:
        yield upload
        upload.complete()
    except BaseException:
        upload.abort()
        raise


def _rows(
    farm: Farm, claimed: StepClaim, progress: Callable[[], None], part: int | None = None
) -> Iterator[SegmentRecord]:
    def page(after: int) -> list[SegmentRecord]:
        return farm.database.read(
            lambda conn: segment_records.page(
                conn, claimed.job_id, limit=PAGE, after=after, part=part
            )
        )

    rows = page(-1)
    while rows:
        for row in rows:
            progress()
            yield row
        rows = page(rows[-1].index)


def _clips(farm: Farm, claimed: StepClaim, progress: Callable[[], None]) -> Iterator[Clip]:
    """The part's clips in order, each checked against its hash; fetched a little ahead."""
    waiting: deque[tuple[SegmentRecord, Future[bytes] | None]] = deque()
    with ThreadPoolExecutor(FETCHERS, thread_name_prefix="fetch") as pool:
        for row in _rows(farm, claimed, progress, claimed.part):
            fetched = (
                pool.submit(farm.store.get, row.object_key) if row.object_key is not None else None
            )
            waiting.append((row, fetched))
            if len(waiting) > AHEAD:
                yield _clip(*waiting.popleft())
        while waiting:
            yield _clip(*waiting.popleft())


def _clip(row: SegmentRecord, fetched: Future[bytes] | None) -> Clip:
    if fetched is None:
        return Clip(row.index, _NOTHING, row.pause_after_s)
    data = fetched.result()
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise FatalError(f"the stored audio of segment {row.index} does not match its hash")
    samples, rate_hz = decode_segment(data)
    if (len(samples), rate_hz) != (row.samples, row.rate_hz):
        raise FatalError(f"the stored audio of segment {row.index} has the wrong length or rate")
    return Clip(row.index, samples, row.pause_after_s)


_NOTHING = np.zeros(0, np.float32)


def _sha256_of_stored(farm: Farm, key: str, size_bytes: int, progress: Callable[[], None]) -> str:
    """Read the file back: the hash says what the store holds, not what we meant to store.

    (The stream itself cannot be hashed as it is written, since its first part comes last.)
    """
    digest, total = hashlib.sha256(), 0
    for piece in farm.store.stream(key):
        progress()
        digest.update(piece)
        total += len(piece)
    if total != size_bytes:
        raise FatalError(f"the store holds {total} bytes of a file of {size_bytes}")
    return digest.hexdigest()


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
    for row in _rows(farm, claimed, progress):
        if chosen(row):
            reason = row.reason or row.error or ""
            yield Omission(row.index, row.part, row.start, row.end, reason)


def _substitutions(
    farm: Farm, claimed: StepClaim, progress: Callable[[], None], spec: JobSpec
) -> Iterator[Substitution]:
    if spec.fallback is None:
        return
    for row in _rows(farm, claimed, progress):
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
        attempts=row.token,
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


def _file_name(part: PartRecord, parts: int, spec: JobSpec) -> str:
    """`audio.mp3` for a single part, `03-the-title.mp3` for a chapter: safe on any file system."""
    if parts == 1:
        return f"audio.{spec.format}"
    plain = unicodedata.normalize("NFKC", part.title).lower()
    slug = re.sub(r"[^\w]+", "-", plain).strip("-_")[:60].strip("-_")
    number = str(part.index + 1).zfill(max(2, len(str(parts))))
    return f"{number}-{slug}.{spec.format}" if slug else f"{number}.{spec.format}"
