"""One job replayed: its rows, its stored audio, its files and its manifest against each other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from shared.errors import LostAudioError, NotFoundError
from shared.jobs import JobState
from shared.ledger import deliverables, jobs, segment_records
from shared.ledger.database import Database
from shared.ledger.deliverables import Deliverable, PartRecord
from shared.ledger.jobs import JobRecord
from shared.ledger.segment_records import SegmentRecord
from shared.storage import ObjectStore
from worker.fetching import fetched
from worker.stored_audio import samples_of
from worker.verifying.files import check_audio, check_manifest, check_timeline
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
    if job.record.state is JobState.EXPIRED or not job.rows:
        return verdict
    all_bytes = sum(row.size_bytes for row in job.rows) + sum(f.size_bytes for f in job.files)
    work = _Work(max(1, all_bytes), told=progress)
    verdict.wrong += check_rows(job.record, job.parts, job.rows)
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
    return _Job(
        record,
        deliverables.parts(conn, job_id),
        deliverables.of_job(conn, job_id, timelines=True),
        segment_records.page(conn, job_id, limit=MOST_ROWS),
    )


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
        yield from (f"part {p.index} has no file" for p in job.parts if p.index not in named)
        if not any(f.kind == "manifest" for f in job.files):
            yield "there is no manifest"
    for file in job.files:
        try:
            pieces = work.over(store.stream(file.object_key))
            if file.kind == "manifest":
                yield from check_manifest(file, pieces, files=job.files, rows=job.rows)
            else:
                verdict.samples += file.samples
                yield from check_timeline(file, job.rows)
                yield from check_audio(file, pieces)
        except NotFoundError:
            yield f"{file.name} is not in the store"
