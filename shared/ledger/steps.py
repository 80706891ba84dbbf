"""Steps in the ledger: plan, assemble, inspect. Claimed and fenced like segments."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from shared.ids import new_id
from shared.jobs import ALIVE
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.messages import StepMessage
from shared.steps import StepKind, StepState


@dataclass(frozen=True, slots=True)
class StepClaim:
    """A leased step and the token to finish it with."""

    id: str
    job_id: str
    kind: StepKind
    part: int
    token: int
    attempt: int


_WAS_LEASED = t.step.c.state == StepState.LEASED


def insert(conn: Connection, job_id: str, kind: StepKind, *, part: int = t.WHOLE_JOB) -> str:
    """Add a step of the job's present round.

    Its uniqueness in (job, kind, part, round) makes a second insert fail loudly.
    """
    step_id = new_id()
    conn.execute(
        t.step.insert().values(
            id=step_id,
            job_id=job_id,
            kind=kind,
            part=part,
            round=select(t.job.c.round).where(t.job.c.id == job_id).scalar_subquery(),
            state=StepState.PENDING,
            created_at=db_now(),
        )
    )
    return step_id


def job_alive() -> ColumnElement[bool]:
    """Whether the job of a step has not ended."""
    return exists().where(t.job.c.id == t.step.c.job_id, t.job.c.state.in_(ALIVE))


def claim(conn: Connection, step_id: str, dispatch_no: int, *, lease_s: float) -> StepClaim | None:
    """Lease a step, or None when the message is stale or the job has ended."""
    now = read_clock(conn)
    row = conn.execute(
        update(t.step)
        .where(
            t.step.c.id == step_id,
            t.step.c.dispatch_no == dispatch_no,
            or_(
                t.step.c.state == StepState.DISPATCHED,
                and_(t.step.c.state == StepState.LEASED, t.step.c.lease_until < now),
            ),
            job_alive(),
        )
        .values(
            abandoned=case((_WAS_LEASED, t.step.c.abandoned + 1), else_=t.step.c.abandoned),
            attempt=t.step.c.attempt + case((_WAS_LEASED, 0), else_=1),
            state=StepState.LEASED,
            token=t.step.c.token + 1,
            lease_until=now + lease_s,
        )
        .returning(t.step)
    ).one_or_none()
    if row is None:
        return None
    return StepClaim(row.id, row.job_id, StepKind(row.kind), row.part, row.token, row.attempt)


def renew(conn: Connection, claimed: StepClaim, *, lease_s: float) -> bool:
    """Extend a step's lease because it made progress. False: stop, another has it."""
    renewed = conn.execute(
        update(t.step)
        .where(
            t.step.c.id == claimed.id,
            t.step.c.token == claimed.token,
            t.step.c.state == StepState.LEASED,
            job_alive(),
        )
        .values(lease_until=db_now() + lease_s)
    )
    if renewed.rowcount != 1:
        _forgive(conn, claimed)
    return renewed.rowcount == 1


def finish(conn: Connection, claimed: StepClaim) -> bool:
    """Mark a step done under its token. False: it was not this token's to finish.

    The newest token may finish even after its lease ran out, so that a slow store delays work but
    never makes it spin.
    """
    return _close(conn, claimed, StepState.DONE, None)


def fail(conn: Connection, claimed: StepClaim, error: str) -> bool:
    """Mark a step failed for good under its token."""
    return _close(conn, claimed, StepState.FAILED, error)


def _is_open_to(claimed: StepClaim) -> ColumnElement[bool]:
    """Whether this token may still close the step."""
    return and_(
        t.step.c.id == claimed.id,
        t.step.c.token == claimed.token,
        t.step.c.state.in_((StepState.LEASED, StepState.DISPATCHED, StepState.PENDING)),
        job_alive(),
    )


def _close(conn: Connection, claimed: StepClaim, state: StepState, error: str | None) -> bool:
    closed = conn.execute(
        update(t.step)
        .where(_is_open_to(claimed))
        .values(state=state, done_at=db_now(), lease_until=None, error=error)
    )
    return closed.rowcount == 1


def withdraw(conn: Connection, claimed: StepClaim) -> bool:
    """Take a step away under its token: it came too early, and is inserted again when it is time.

    False: it was not this token's.
    """
    withdrawn = conn.execute(delete(t.step).where(_is_open_to(claimed)))
    return withdrawn.rowcount == 1


def release(
    conn: Connection, claimed: StepClaim, *, delay_s: float, error: str, burn: bool = False
) -> bool:
    """Give a step back for a later try; `burn` keeps the attempt counted."""
    released = conn.execute(
        update(t.step)
        .where(
            t.step.c.id == claimed.id,
            t.step.c.token == claimed.token,
            t.step.c.state == StepState.LEASED,
        )
        .values(
            state=StepState.PENDING,
            attempt=t.step.c.attempt - (0 if burn else 1),
            lease_until=None,
            not_before=db_now() + delay_s,
            abandoned=0,
            error=error[:500],
        )
    )
    if released.rowcount != 1:
        _forgive(conn, claimed)
    return released.rowcount == 1


def _forgive(conn: Connection, claimed: StepClaim) -> None:
    """A holder turns up late: then the leases that ran out were no deaths."""
    conn.execute(
        update(t.step)
        .where(t.IS_OPEN_STEP, t.step.c.id == claimed.id, t.step.c.token >= claimed.token)
        .values(abandoned=0)
    )


def dispatched_before(conn: Connection, age_s: float) -> list[StepMessage]:
    """Messages of steps dispatched longer ago than `age_s` and claimed by nobody yet."""
    rows = conn.execute(
        select(t.step.c.id, t.step.c.job_id, t.step.c.kind, t.step.c.dispatch_no).where(
            t.IS_OPEN_STEP,
            t.step.c.state == StepState.DISPATCHED,
            t.step.c.dispatched_at < read_clock(conn) - age_s,
        )
    )
    return [StepMessage(row.id, row.job_id, row.kind, row.dispatch_no) for row in rows]


def dispatched_counts(conn: Connection) -> dict[str, int]:
    """Steps dispatched and claimed by nobody yet, by kind."""
    rows = conn.execute(
        select(t.step.c.kind, func.count())
        .where(t.IS_OPEN_STEP, t.step.c.state == StepState.DISPATCHED)
        .group_by(t.step.c.kind)
    )
    return {row[0]: row[1] for row in rows}


def take_back_lost(conn: Connection, lost: Sequence[StepMessage]) -> int:
    """Return dispatches that the broker no longer holds to the waiting ones."""
    taken = 0
    for message in lost:
        taken += conn.execute(
            update(t.step)
            .where(
                t.step.c.id == message.step_id,
                t.step.c.state == StepState.DISPATCHED,
                t.step.c.dispatch_no == message.dispatch_no,
            )
            .values(state=StepState.PENDING)
        ).rowcount
    return taken


def open_counts(conn: Connection) -> dict[str, int]:
    """Steps that wait or run, by kind, for metrics."""
    rows = conn.execute(
        select(t.step.c.kind, func.count()).where(t.IS_OPEN_STEP).group_by(t.step.c.kind)
    )
    return {row[0]: row[1] for row in rows}
