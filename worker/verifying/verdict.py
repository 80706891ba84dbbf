"""One job replayed: its rows, its stored audio, its files and its manifest against each other."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from shared.errors import LostAudioError, NotFoundError
from shared.jobs import JobState
from shared.ledger import deliverables, jobs, objects, segment_records
from shared.ledger.database import Database
from shared.ledger.deliverables import Deliverable, PartRecord
from shared.ledger.jobs import JobRecord
from shared.ledger.objects import Keeping
from shared.ledger.segment_records import SegmentRecord
from shared.storage import ObjectStore
from worker.fetching import fetched
from worker.stored_audio import samples_of
from worker.verifying.files import check_audio, check_settings, check_timeline
from worker.verifying.kept import check_kept
from worker.verifying.manifests import check_manifest
from worker.verifying.parts import check_parts, check_text
from worker.verifying.rows import DELIVERED, check_rows

MOST_ROWS = 10_000_000  # of one job: as many as a text may have characters, and more


@dataclass(slots=True)
class Verdict:
    """What was looked at, and what was found wrong, each in a sentence. Nothing wrong: `ok`."""

    job_id: str
    state: JobState
    segments: int = 0
    stored_segments: int = 0
    files: int = 0
    samples: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not self.wrong


@dataclass(frozen=True, slots=True)
class _Job:
    """A job as the ledger had it at one moment."""

    record: JobRecord
    parts: Sequence[PartRecord]
    files: Sequence[Deliverable]
    rows: Sequence[SegmentRecord]
    text_characters: int | None
    kept: Mapping[str, Keeping]


def verify(
    database: Database,
    store: ObjectStore,
    job_id: str,
    *,
    progress: Callable[[float], None] = lambda _: None,
) -> Verdict:
    """Replay a job. `progress` gets the fraction done. Nothing is changed.

    A job that is alive is checked as far as it is. Raises NotFoundError, TransientError.
    """
    job = database.read(lambda conn: _read(conn, job_id))
    verdict = Verdict(job_id, job.record.state, segments=len(job.rows), files=len(job.files))
    if job.record.state is JobState.EXPIRED:
        return verdict
    all_bytes = sum(row.size_bytes for row in job.rows) + sum(f.size_bytes for f in job.files)
    work = _Work(max(1, all_bytes), told=progress)
    verdict.wrong += check_text(job.record, job.text_characters)
    verdict.wrong += check_rows(job.record, job.rows)
    if job.record.state in DELIVERED:  # elsewhere counters move while one looks
        verdict.wrong += check_parts(job.record, job.parts, job.rows)
        verdict.wrong += check_kept(Counter(_keys(job.files, job.rows)), job.kept)
    verdict.wrong += _stored(store, job.rows, verdict, work)
    verdict.wrong += _files(store, job, verdict, work)
    return verdict


@dataclass(slots=True)
class _Work:
    """How many bytes have been looked at, of all."""

    total: int
    told: Callable[[float], None]
    done: int = 0

    def step(self, size_bytes: int) -> None:
        self.done += size_bytes
        self.told(min(1.0, self.done / self.total))

    def over(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.step(len(piece))
            yield piece


def _read(conn: Connection, job_id: str) -> _Job:
    record = jobs.get(conn, jobs.tenant_of(conn, job_id), job_id)
    files = deliverables.of_job(conn, job_id, timelines=True)
    rows = segment_records.page(conn, job_id, limit=MOST_ROWS)
    return _Job(
        record,
        deliverables.parts(conn, job_id),
        files,
        rows,
        jobs.text_length(conn, job_id),
        objects.keeping(conn, {*_keys(files, rows)}),
    )


def _keys(files: Sequence[Deliverable], rows: Sequence[SegmentRecord]) -> Iterator[str]:
    yield from (row.object_key for row in rows if row.object_key is not None)
    yield from (file.object_key for file in files)


def _stored(
    store: ObjectStore, rows: Sequence[SegmentRecord], verdict: Verdict, work: _Work
) -> Iterator[str]:
    """Each stored rendering against its hash, length and rate."""
    for row, data in fetched(store, rows):
        work.step(row.size_bytes)
        if data is None:
            continue
        verdict.stored_segments += data != b""
        try:
            samples_of(row, data)
        except LostAudioError as error:
            yield str(error)


def _files(store: ObjectStore, job: _Job, verdict: Verdict, work: _Work) -> Iterator[str]:
    if job.record.state in DELIVERED:
        named = {f.part for f in job.files if f.kind == "audio"}
        parts = {p.index for p in job.parts}
        yield from (f"part {part} has no file" for part in sorted(parts - named))
        yield from (
            f"there is a file of part {part}, and no part" for part in sorted(named - parts)
        )
        if not any(f.kind == "manifest" for f in job.files):
            yield "there is no manifest"
    for file in job.files:
        try:
            pieces = work.over(store.stream(file.object_key))
            if file.kind == "manifest":
                yield from check_manifest(
                    file, pieces, job=job.record, files=job.files, rows=job.rows
                )
            else:
                verdict.samples += file.samples
                yield from check_settings(file, job.record)
                yield from check_timeline(file, job.rows)
                yield from check_audio(file, pieces)
        except NotFoundError:
            yield f"{file.name} is not in the store"
