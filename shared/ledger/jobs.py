"""Jobs in the ledger: accept, read, list, cancel. Knows nothing of segments' dispatch."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, select, update

from shared.deadlines import first_due_at, job_due_at
from shared.errors import NotFoundError
from shared.ids import new_id
from shared.jobs import ALIVE, DEFAULT_RETENTION_S, JOB_TRANSITIONS, JobSpec, JobState
from shared.ledger import progress, replays
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.ledger.named_webhook import NamedWebhook, told_columns
from shared.ledger.outbox import record_end
from shared.ledger.progress import Progress
from shared.ledger.webhooks import MarkOf
from shared.segments import SegmentState
from shared.settings import TierSettings
from shared.steps import StepKind, StepState


@dataclass(frozen=True, slots=True)
class NewJob:
    """A submission that passed every check. `chapters` are (title, start, end) over `text`.

    `expected_audio_s` is about how long its audio will be, in seconds; 0: nobody knows.
    `retention_s`: how long its files and its text are kept once it has ended.
    """

    tenant: str
    spec: JobSpec
    text: str
    chapters: Sequence[tuple[str, int, int]]
    title: str
    metadata: Mapping[str, str]
    idempotency_key: str | None = None
    request_sha256: str = ""
    expected_audio_s: float = 0.0
    retention_s: float = DEFAULT_RETENTION_S
    webhook: NamedWebhook | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job as stored, with its progress."""

    id: str
    tenant: str
    state: JobState
    paused: bool
    paused_at: float | None
    title: str
    metadata: Mapping[str, str]
    spec: JobSpec
    characters: int
    created_at: float
    due_at: float
    planned_at: float | None
    started_at: float | None
    rendered_at: float | None
    ended_at: float | None
    retention_s: float
    expires_at: float | None
    segments_reused: int
    parts_reused: int
    error_code: str | None
    error_message: str | None
    webhook_id: str | None
    webhook_events: Sequence[str]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of a submit: the job, its plan step, and whether it was a replay."""

    job_id: str
    step_id: str | None
    replayed: bool


def accept(
    conn: Connection,
    new: NewJob,
    target: TierSettings,
    mark_of: MarkOf | None = None,
) -> Accepted:
    """Write job, text and plan step in one transaction; nothing else exists before it commits.

    With an idempotency key, an equal earlier request returns its job and an unequal one raises
    ConflictError, as does a webhook that is disabled. `mark_of` is needed for a job that names
    a webhook. Raises IntegrityError when the same key
    races: see `replays.is_race`.
    """
    if new.idempotency_key is not None:
        earlier = replays.find(conn, new.tenant, new.idempotency_key, new.request_sha256)
        if earlier is not None:
            return Accepted(earlier, None, replayed=True)
    job_id, step_id, now = new_id(), new_id(), read_clock(conn)
    due_at = job_due_at(now, len(new.text), target)
    told = told_columns(conn, new.tenant, new.webhook, mark_of, now)
    if new.idempotency_key is not None:
        replays.remember(
            conn, new.tenant, new.idempotency_key, new.request_sha256, job_id=job_id, now=now
        )
    conn.execute(
        t.job.insert().values(
            id=job_id,
            tenant=new.tenant,
            state=JobState.ACCEPTED,
            paused=False,
            tier=new.spec.tier,
            title=new.title,
            metadata=dict(new.metadata),
            spec=new.spec.model_dump(mode="json"),
            characters=len(new.text),
            expected_audio_s=new.expected_audio_s,
            created_at=now,
            due_at=due_at,
            first_due_at=first_due_at(now, due_at, target),
            retention_s=new.retention_s,
            **told,
        )
    )
    conn.execute(
        t.job_text.insert().values(
            job_id=job_id, text=new.text, chapters=json.dumps(list(new.chapters))
        )
    )
    conn.execute(
        t.step.insert().values(
            id=step_id,
            job_id=job_id,
            kind=StepKind.PLAN,
            part=t.WHOLE_JOB,
            state=StepState.PENDING,
            created_at=now,
        )
    )
    return Accepted(job_id, step_id, replayed=False)


def get(conn: Connection, tenant: str, job_id: str) -> JobRecord:
    """One job of this tenant. Raises NotFoundError."""
    row = conn.execute(
        _with_progress().where(t.job.c.id == job_id, t.job.c.tenant == tenant)
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no job {job_id}", code="job-not-found")
    [record] = _records(conn, [row])
    return record


def page(
    conn: Connection,
    tenant: str,
    *,
    limit: int,
    before_id: str | None = None,
    states: Sequence[JobState] = (),
    tier: str | None = None,
    created_from: float | None = None,
    created_to: float | None = None,
) -> list[JobRecord]:
    """Newest first; pass the last id of a page as `before_id` for the next one."""
    query = _with_progress().where(t.job.c.tenant == tenant)
    if before_id is not None:
        query = query.where(t.job.c.id < before_id)
    if states:
        query = query.where(t.job.c.state.in_(states))
    if tier is not None:
        query = query.where(t.job.c.tier == tier)
    if created_from is not None:
        query = query.where(t.job.c.created_at >= created_from)
    if created_to is not None:
        query = query.where(t.job.c.created_at < created_to)
    return _records(conn, conn.execute(query.order_by(t.job.c.id.desc()).limit(limit)).all())


def tenant_of(conn: Connection, job_id: str) -> str:
    """Whose a job is, for operators. Raises NotFoundError."""
    tenant = conn.execute(select(t.job.c.tenant).where(t.job.c.id == job_id)).scalar_one_or_none()
    if tenant is None:
        raise NotFoundError(f"there is no job {job_id}", code="job-not-found")
    return str(tenant)


def read_spec(conn: Connection, job_id: str) -> tuple[str, JobSpec]:
    """(tenant, frozen settings) of a job, for workers."""
    row = conn.execute(select(t.job.c.tenant, t.job.c.spec).where(t.job.c.id == job_id)).one()
    return row.tenant, JobSpec.model_validate(row.spec)


def read_text(conn: Connection, job_id: str) -> tuple[str, list[tuple[str, int, int]]]:
    """(whole text, chapters as submitted) of a job."""
    row = conn.execute(select(t.job_text).where(t.job_text.c.job_id == job_id)).one()
    return row.text, [tuple(chapter) for chapter in json.loads(row.chapters)]


def text_length(conn: Connection, job_id: str) -> int | None:
    """How many characters the kept text of a job has; None: it is not kept (any more)."""
    text = conn.execute(
        select(t.job_text.c.text).where(t.job_text.c.job_id == job_id)
    ).scalar_one_or_none()
    return None if text is None else len(text)


def cancel(conn: Connection, tenant: str, job_id: str) -> JobRecord:
    """End a live job as cancelled; a job that has ended is left as it is."""
    record = get(conn, tenant, job_id)
    if end(conn, job_id, JobState.CANCELLED):
        return get(conn, tenant, job_id)
    return record


_RETRIED = frozenset(s for s in JobState if s.ended and JobState.RENDERING in JOB_TRANSITIONS[s])


def end(
    conn: Connection,
    job_id: str,
    state: JobState,
    *,
    code: str | None = None,
    message: str | None = None,
) -> bool:
    """Move a live job to an end state, once; its open segments and steps are cancelled.

    Returns False when the job had already ended. The outbox gets one event per end.
    """
    ended = conn.execute(
        update(t.job)
        .where(t.job.c.id == job_id, t.job.c.state.in_(ALIVE))
        .values(
            state=state,
            paused=False,
            paused_at=None,
            ended_at=db_now(),
            expires_at=db_now() + t.job.c.retention_s,
            # What can be retried may still get something that counts.
            unswept_since=None if state in _RETRIED else db_now(),
            error_code=code,
            error_message=message,
        )
    )
    if ended.rowcount != 1:
        return False
    conn.execute(
        update(t.segment)
        .where(
            t.segment.c.job_id == job_id,
            t.segment.c.state.in_(
                (SegmentState.PENDING, SegmentState.DISPATCHED, SegmentState.LEASED)
            ),
        )
        .values(state=SegmentState.CANCELLED)
    )
    conn.execute(
        update(t.step)
        .where(
            t.step.c.job_id == job_id,
            t.step.c.state.in_((StepState.PENDING, StepState.DISPATCHED, StepState.LEASED)),
        )
        .values(state=StepState.CANCELLED)
    )
    record_end(conn, job_id, state)
    return True


_STILL_RENDERING = select(t.job.c.id, t.job.c.paused).where(
    t.job.c.id.in_(bindparam("ids", expanding=True)), t.job.c.state == JobState.RENDERING
)


def still_rendering(conn: Connection, job_ids: Collection[str]) -> dict[str, bool]:
    """Those of these jobs that are being rendered, by whether they are paused."""
    rows = conn.execute(_STILL_RENDERING, {"ids": list(job_ids)})
    return {row.id: row.paused for row in rows}


def overdue_ids(conn: Connection, max_age_s: float) -> list[str]:
    """Live jobs older than the age limit; a retry starts a job's age anew."""
    oldest = read_clock(conn) - max_age_s
    begun_at = func.coalesce(t.job.c.retried_at, t.job.c.created_at)
    rows = conn.execute(
        select(t.job.c.id).where(
            t.job.c.ended_at.is_(None), t.job.c.created_at < oldest, begun_at < oldest
        )
    )
    return [row.id for row in rows]


def counts_by_state(conn: Connection) -> dict[str, int]:
    """How many jobs stand in each state, for metrics."""
    rows = conn.execute(select(t.job.c.state, func.count()).group_by(t.job.c.state))
    return {row[0]: row[1] for row in rows}


@cache  # built once: that costs more than running it
def _with_progress() -> Select[Any]:
    return select(t.job, *progress.columns(), db_now().label("now"))


def _records(conn: Connection, rows: Sequence[Row[Any]]) -> list[JobRecord]:
    past = progress.past_of(conn, rows)
    return [_record(row, progress.progress_of(row, past)) for row in rows]


def _record(row: Row[Any], progress_: Progress) -> JobRecord:
    return JobRecord(
        id=row.id,
        tenant=row.tenant,
        state=JobState(row.state),
        paused=row.paused,
        paused_at=row.paused_at,
        title=row.title,
        metadata=row.metadata,
        spec=JobSpec.model_validate(row.spec),
        characters=row.characters,
        created_at=row.created_at,
        due_at=row.due_at,
        planned_at=row.planned_at,
        started_at=row.started_at,
        rendered_at=row.rendered_at,
        ended_at=row.ended_at,
        retention_s=row.retention_s,
        expires_at=row.expires_at,
        segments_reused=row.segments_reused,
        parts_reused=row.parts_reused,
        error_code=row.error_code,
        error_message=row.error_message,
        webhook_id=row.webhook_id,
        webhook_events=tuple(row.webhook_events or ()),
        progress=progress_,
    )
