"""Steps whose lease ran out: back to the waiting ones, and in the end their job's failure.

A step has its process to itself, so nobody else can have taken that down; its machine, though,
somebody can, and stores that stand still let leases run out whose holders live. So it takes many in
a row, and any word of a holder, however late, begins the count anew (`steps.renew`,
`steps.release`).
"""

import random
from dataclasses import dataclass

from sqlalchemy import Connection, update

from shared.jobs import JobState
from shared.ledger import jobs, steps
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.steps import StepKind, StepState

MOST_IN_A_ROW = 6  # a store that stands still costs three or four, before anybody knows of it
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class LostStep:
    """A step whose lease ran out, for the `abandoned`th time in a row without a word."""

    id: str
    job_id: str
    kind: StepKind
    token: int
    abandoned: int


def take_back_expired(conn: Connection) -> list[LostStep]:
    """Return steps whose lease ran out to the waiting ones; that burns no attempt.

    The first time they may go again at once. Then each waits for longer, and not as long as the
    others: steps that one of them took down with it part.
    """
    now = read_clock(conn)
    rows = conn.execute(
        update(t.step)
        .where(
            t.IS_OPEN_STEP,
            t.step.c.state == StepState.LEASED,
            t.step.c.lease_until < now,
        )
        .values(
            state=StepState.PENDING,
            attempt=t.step.c.attempt - 1,
            lease_until=None,
            abandoned=t.step.c.abandoned + 1,
            error="lease expired",
        )
        .returning(t.step.c.id, t.step.c.job_id, t.step.c.kind, t.step.c.token, t.step.c.abandoned)
    ).all()
    lost = [LostStep(r.id, r.job_id, StepKind(r.kind), r.token, r.abandoned) for r in rows]
    for step in lost:
        if step.abandoned > 1:
            wait_s = min(random.uniform(0.5, 1.0) * 2**step.abandoned, LONGEST_PAUSE_S)  # noqa: S311 - jitter
            conn.execute(
                update(t.step).where(t.step.c.id == step.id).values(not_before=now + wait_s)
            )
    return lost


def fail(conn: Connection, lost: LostStep) -> bool:
    """Fail a step that takes down whoever carries it out, and with it its job.

    False: somebody has it again, or it is over.
    """
    failed = conn.execute(
        update(t.step)
        .where(
            t.IS_OPEN_STEP,
            t.step.c.id == lost.id,
            t.step.c.token == lost.token,
            t.step.c.abandoned >= lost.abandoned,
            steps.job_alive(),
        )
        .values(state=StepState.FAILED, done_at=db_now(), lease_until=None)
    )
    if failed.rowcount != 1:
        return False
    jobs.end(
        conn,
        lost.job_id,
        JobState.FAILED,
        code=f"{lost.kind}-failed",
        message=f"the {lost.kind} step was lost {lost.abandoned} times in a row, each time "
        "together with the process that carried it out",
    )
    return True
