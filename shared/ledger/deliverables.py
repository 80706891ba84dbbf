"""Deliverables in the ledger: files a part's assembly produced, and the end of the job."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select, update

from shared.errors import NotFoundError
from shared.jobs import JobState
from shared.ledger import encodings, jobs, objects, steps
from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.ledger.encodings import Encoding
from shared.ledger.steps import StepClaim
from shared.steps import StepKind


@dataclass(frozen=True, slots=True)
class PartRecord:
    """A part as stored: a chapter, or the whole text. Offsets are characters of the job's text."""

    index: int
    title: str
    start: int
    end: int
    segments_total: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Deliverable:
    """A finished file. `timeline` lists [segment index, start sample, end sample]."""

    part: int
    kind: str
    name: str
    format: str
    content_type: str
    object_key: str
    size_bytes: int
    sha256: str
    samples: int
    rate_hz: int
    timeline: list[list[int]] | None = None


@dataclass(frozen=True, slots=True)
class PartCommit:
    """The outcome of committing a part: whether it counted, and the closing step if it was last."""

    won: bool
    step_id: str | None = None


def parts(conn: Connection, job_id: str) -> list[PartRecord]:
    """All parts of a job, in order."""
    rows = conn.execute(
        select(*(t.part.c[name] for name in PartRecord.__slots__))
        .where(t.part.c.job_id == job_id)
        .order_by(t.part.c.index)
    )
    return [PartRecord(**row._asdict()) for row in rows]


def commit_part(
    conn: Connection, claimed: StepClaim, file: Deliverable, *, part_key: str | None = None
) -> PartCommit:
    """Record a part's file and close its step; the last part inserts the job's closing step.

    With a `part_key` other jobs of the tenant may reuse the file.
    When the token was lost nothing counts, and the caller deletes its object.
    """
    if not steps.finish(conn, claimed):
        return PartCommit(won=False)
    tenant = _insert(conn, claimed.job_id, file)
    if part_key is not None:
        first = _first_segment(conn, claimed)
        encoding = Encoding(
            object_key=file.object_key,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            samples=file.samples,
            rate_hz=file.rate_hz,
            timeline=_shifted(file.timeline or (), -first),
        )
        encodings.record(conn, tenant, part_key, encoding)
    return _count_part(conn, claimed)


def reuse_part(
    conn: Connection,
    claimed: StepClaim,
    encoding: Encoding,
    *,
    name: str,
    format_: str,
    content_type: str,
) -> PartCommit | None:
    """Commit a part with a file that is there already. None: it is being deleted, make it anew."""
    if not objects.lock_usable(conn, [encoding.object_key]):
        return None
    if not steps.finish(conn, claimed):
        return PartCommit(won=False)
    file = Deliverable(
        part=claimed.part,
        kind="audio",
        name=name,
        format=format_,
        content_type=content_type,
        object_key=encoding.object_key,
        size_bytes=encoding.size_bytes,
        sha256=encoding.sha256,
        samples=encoding.samples,
        rate_hz=encoding.rate_hz,
        timeline=_shifted(encoding.timeline, _first_segment(conn, claimed)),
    )
    _insert(conn, claimed.job_id, file)
    return _count_part(conn, claimed, reused=1)


def _count_part(conn: Connection, claimed: StepClaim, *, reused: int = 0) -> PartCommit:
    conn.execute(
        update(t.part)
        .where(t.part.c.job_id == claimed.job_id, t.part.c.index == claimed.part)
        .values(assembled=True)
    )
    remaining = conn.execute(
        update(t.job)
        .where(t.job.c.id == claimed.job_id)
        .values(
            parts_remaining=t.job.c.parts_remaining - 1,
            parts_reused=t.job.c.parts_reused + reused,
        )
        .returning(t.job.c.parts_remaining)
    ).scalar_one()
    if remaining != 0:
        return PartCommit(won=True)
    return PartCommit(won=True, step_id=steps.insert(conn, claimed.job_id, StepKind.ASSEMBLE))


def _first_segment(conn: Connection, claimed: StepClaim) -> int:
    """The index of the part's first segment: timelines of files count from there."""
    c = t.segment.c
    query = select(func.coalesce(func.min(c.index), 0)).where(
        c.job_id == claimed.job_id, c.part == claimed.part
    )
    return int(conn.execute(query).scalar_one())


def _shifted(timeline: Sequence[Sequence[int]], by: int) -> list[list[int]]:
    return [[index + by, start, end] for index, start, end in timeline]


def commit_job(conn: Connection, claimed: StepClaim, manifest: Deliverable) -> bool:
    """Record the manifest, close the step and end the job. False: the token was lost."""
    if not steps.finish(conn, claimed):
        return False
    _insert(conn, claimed.job_id, manifest)
    gaps = conn.execute(
        select(func.sum(t.part.c.quarantined)).where(t.part.c.job_id == claimed.job_id)
    ).scalar_one()
    jobs.end(conn, claimed.job_id, JobState.PARTIAL if gaps else JobState.COMPLETED)
    return True


def of_job(conn: Connection, job_id: str, *, timelines: bool = False) -> list[Deliverable]:
    """Files of a job: parts in order, then the manifest."""
    names = [name for name in Deliverable.__slots__ if timelines or name != "timeline"]
    c = t.deliverable.c
    rows = conn.execute(
        select(*(c[name] for name in names)).where(c.job_id == job_id).order_by(c.kind, c.part)
    )
    return [Deliverable(**row._asdict()) for row in rows]


def one(conn: Connection, job_id: str, name: str) -> Deliverable:
    """One file of a job by its name. Raises NotFoundError."""
    for file in of_job(conn, job_id):
        if file.name == name:
            return file
    raise NotFoundError(f"job {job_id} has no file {name}", code="deliverable-not-found")


def remove(
    conn: Connection, job_id: str, parts: Sequence[int] | None = None, *, keep_s: float
) -> None:
    """Drop files of a job, all or those of some parts.

    Objects that nobody else points to are condemned in `keep_s` seconds.
    """
    c = t.deliverable.c
    these = c.job_id == job_id
    if parts is not None:
        these &= c.part.in_(parts)
    keys = conn.execute(select(c.object_key).where(these)).scalars().all()
    conn.execute(delete(t.deliverable).where(these))
    objects.release(conn, Counter(keys), keep_s=keep_s)


def _insert(conn: Connection, job_id: str, file: Deliverable) -> str:
    """Write a file's row and its reference. Returns the job's tenant."""
    tenant: str = conn.execute(select(t.job.c.tenant).where(t.job.c.id == job_id)).scalar_one()
    objects.refer(conn, tenant, job_id, {file.object_key: 1})
    conn.execute(
        t.deliverable.insert().values(
            job_id=job_id,
            part=file.part,
            kind=file.kind,
            name=file.name,
            format=file.format,
            content_type=file.content_type,
            object_key=file.object_key,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            samples=file.samples,
            rate_hz=file.rate_hz,
            timeline=file.timeline,
            created_at=db_now(),
        )
    )
    return tenant
