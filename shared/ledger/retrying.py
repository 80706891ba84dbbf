"""Taking an ended job up again: what is missing is rendered, what is there is kept.

A new round of the job begins: its steps and its end event are the round's own. Which tokens may
commit is untouched, so a worker left over from the round before changes nothing.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, exists, func, select, update

from shared.errors import ConflictError
from shared.jobs import JobState
from shared.ledger import deliverables, jobs, steps
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.jobs import JobRecord
from shared.ledger.kept import first_due_later
from shared.ledger.named_webhook import is_progress_told
from shared.ledger.offers import refresh_heads
from shared.segments import SegmentState
from shared.steps import StepKind, StepState

RETRYABLE = frozenset({JobState.PARTIAL, JobState.FAILED})


def retry(conn: Connection, tenant: str, job_id: str) -> JobRecord:
    """Begin the next round of a partial or failed job; one that is alive is left as it is.

    Raises NotFoundError, and ConflictError "not-retryable" for a job that lacks nothing or was
    cancelled.
    """
    record = jobs.get(conn, tenant, job_id)
    if not record.state.ended:
        return record
    if record.state not in RETRYABLE:
        raise ConflictError(
            f"the job is {record.state.value}: there is nothing to try again",
            code="not-retryable",
            state=record.state.value,
        )
    now = read_clock(conn)
    begun = conn.execute(
        update(t.job)
        .where(t.job.c.id == job_id, t.job.c.state.in_(RETRYABLE))
        .values(
            state=JobState.RENDERING,
            round=t.job.c.round + 1,
            retried_at=now,
            due_at=t.job.c.due_at + (now - t.job.c.ended_at),
            first_due_at=first_due_later(now - t.job.c.ended_at),
            rendered_at=None,
            ended_at=None,
            expires_at=None,
            error_code=None,
            error_message=None,
        )
        .returning(t.job.c.webhook_events)
    ).one_or_none()
    if begun is None:  # another request was faster
        return jobs.get(conn, tenant, job_id)
    _forget_files(conn, job_id, _reopen_parts(conn, job_id))
    _reopen_segments(conn, job_id, now, stood_s=now - (record.ended_at or now))
    if is_progress_told(conn, tenant, begun.webhook_events or ()):
        conn.execute(update(t.job).where(t.job.c.id == job_id).values(progress_at=now))
    _insert_next_steps(conn, job_id)
    refresh_heads(conn, [job_id])
    return jobs.get(conn, tenant, job_id)


def _reopen_parts(conn: Connection, job_id: str) -> list[int]:
    """Give the parts with gaps back to the engines. Returns those whose file is now out of date."""
    c = t.segment.c
    gaps = conn.execute(
        select(c.part, func.count().label("segments"), func.sum(c.chars).label("chars"))
        .where(c.job_id == job_id, c.state == SegmentState.QUARANTINED)
        .group_by(c.part)
    ).all()
    rendered, assembled = 0, []
    for gap in gaps:
        part = conn.execute(
            update(t.part)
            .where(t.part.c.job_id == job_id, t.part.c.index == gap.part)
            .values(
                remaining=t.part.c.remaining + gap.segments,
                quarantined=0,
                chars_done=t.part.c.chars_done - gap.chars,
            )
            .returning(t.part.c.remaining, t.part.c.assembled)
        ).one()
        rendered += part.remaining == gap.segments
        if part.assembled:
            assembled.append(gap.part)
    conn.execute(
        update(t.part)
        .where(t.part.c.job_id == job_id, t.part.c.index.in_(assembled))
        .values(assembled=False)
    )
    conn.execute(
        update(t.job)
        .where(t.job.c.id == job_id)
        .values(
            parts_rendering=t.job.c.parts_rendering + rendered,
            parts_remaining=t.job.c.parts_remaining + len(assembled),
        )
    )
    return assembled


def _forget_files(conn: Connection, job_id: str, parts: Sequence[int]) -> None:
    """Drop these parts' files and the manifest; others take their place."""
    deliverables.remove(conn, job_id, [*parts, t.WHOLE_JOB], keep_s=0.0)


def _reopen_segments(conn: Connection, job_id: str, now: float, *, stood_s: float) -> None:
    """Let what was given up, or was open when the job failed, wait again with a clean record."""
    c = t.segment.c
    conn.execute(
        update(t.segment)
        .where(
            c.job_id == job_id,
            c.state.in_((SegmentState.QUARANTINED, SegmentState.CANCELLED)),
        )
        .values(
            state=SegmentState.PENDING,
            attempt=0,
            crashes=0,
            suspect=False,
            abandoned=0,
            blamed_token=0,
            lease_until=None,
            not_before=now,
            done_at=None,
            error=None,
            due_at=c.due_at + stood_s,
        )
    )


def _insert_next_steps(conn: Connection, job_id: str) -> None:
    """Insert the steps that can run now; move the job to the state that they belong to."""
    planned = _has_step(conn, job_id, StepKind.PLAN, StepState.DONE)
    if not planned:
        steps.insert(conn, job_id, StepKind.PLAN)
        if not conn.execute(select(exists().where(t.part.c.job_id == job_id))).scalar_one():
            _move(conn, job_id, JobState.ACCEPTED)
            return
    p = t.part.c
    # The end of the plan starts the assembly of parts without speech; that of all others was
    # started by their last sentence, which may have come before the plan was whole.
    whole = (p.remaining == 0) & p.assembled.is_(False)
    if not planned:
        whole &= p.segments_total > 0
    ready = conn.execute(
        select(p.index).where(p.job_id == job_id, whole).order_by(p.index)
    ).scalars()
    for part in ready.all():
        steps.insert(conn, job_id, StepKind.ASSEMBLE, part=part)
    left = conn.execute(
        select(t.job.c.parts_rendering, t.job.c.parts_remaining).where(t.job.c.id == job_id)
    ).one()
    if left.parts_rendering == 0:
        _move(conn, job_id, JobState.ASSEMBLING, rendered_at=read_clock(conn))
    if left.parts_remaining == 0:
        steps.insert(conn, job_id, StepKind.ASSEMBLE)


def _move(
    conn: Connection, job_id: str, state: JobState, *, rendered_at: float | None = None
) -> None:
    moved = {"state": state, "rendered_at": rendered_at}
    conn.execute(update(t.job).where(t.job.c.id == job_id).values(moved))


def _has_step(conn: Connection, job_id: str, kind: StepKind, state: StepState) -> bool:
    found: ColumnElement[bool] = exists().where(
        t.step.c.job_id == job_id, t.step.c.kind == kind, t.step.c.state == state
    )
    return bool(conn.execute(select(found)).scalar_one())
