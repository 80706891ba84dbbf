"""What schedulers and dispatchers do, any number of them; and the passing of time.

Time passes by changing what rows say of it: no test waits for a lease.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, text

from shared.forgetting import forget
from shared.jobs import JobState
from shared.ledger import (
    abandoned,
    abandoned_steps,
    expiry,
    feeding,
    jobs,
    objects,
    offers,
    set_back,
    step_turns,
    steps,
)
from shared.ledger.giving_up import give_up
from shared.ledger.segments import Claim
from shared.ledger.steps import StepClaim
from shared.messages import StepMessage, SynthMessage
from shared.scheduling.pools import SHARED_POOL
from tests.contract.ledger.machine.held import Held
from tests.contract.ledger.machine.nodes import MOST_CRASHES
from tests.contract.ledger.machine.owners import KEEP_S

HOUR_S = 3_600.0
MOST_LOST_IN_A_ROW = 3
LONGEST = set_back.Longest(
    lease_s=HOUR_S,
    delivery_lease_s=HOUR_S,
    tries_s=(0.0, HOUR_S),
    asked_s=HOUR_S,
    hold_s=HOUR_S,
    progress_s=HOUR_S,
    kept_s=HOUR_S,
)

Some = Callable[[Sequence[SynthMessage | StepMessage]], Sequence[SynthMessage | StepMessage]]


def fill(held: Held, room: int) -> None:
    """Send up to `room` sentences more."""

    def work(conn: Connection) -> list[SynthMessage]:
        for tier in SHARED_POOL.tiers:
            held.database.lock_tier(conn, tier)
        return feeding.fill(conn, SHARED_POOL, room)

    held.messages.extend(held.database.transact(work))


def send_steps(held: Held, window: int) -> None:
    held.step_messages.extend(
        held.database.transact(lambda conn: step_turns.dispatch(conn, window=window))
    )


def let_lease_run_out(held: Held, claimed: Claim) -> None:
    """Time passes for one claim; whoever holds the segment now knows nothing of it."""
    query = text(
        "UPDATE segment SET lease_until = 1.0"
        " WHERE job_id = :job AND \"index\" = :number AND state = 'leased'"
    )
    held.database.transact(
        lambda conn: conn.execute(query, {"job": claimed.job_id, "number": claimed.index})
    )


def let_step_lease_run_out(held: Held, claimed: StepClaim) -> None:
    query = text("UPDATE step SET lease_until = 1.0 WHERE id = :id AND state = 'leased'")
    held.database.transact(lambda conn: conn.execute(query, {"id": claimed.id}))


def let_waits_pass(held: Held) -> None:
    """Nothing that was given back has to wait any longer."""

    def work(conn: Connection) -> None:
        for table in ("segment", "step", "delivery"):
            conn.execute(text(f"UPDATE {table} SET not_before = 0 WHERE state = 'pending'"))  # noqa: S608
        conn.execute(text("UPDATE webhook SET held_until = 0, next_at = 0 WHERE next_at > 0"))

    held.database.transact(work)


def take_back_expired(held: Held) -> None:
    """Those that have taken down too many of their holders are given up."""
    database = held.database
    for lost in database.transact(abandoned.take_back_expired):
        if lost.crashes >= MOST_CRASHES:
            where = (lost.job_id, lost.index, lost.token)
            database.transact(lambda conn, where=where: give_up(conn, *where, "it kills"))  # type: ignore[misc]
    for step in database.transact(abandoned_steps.take_back_expired):
        if step.abandoned >= MOST_LOST_IN_A_ROW:
            database.transact(lambda conn, step=step: abandoned_steps.fail(conn, step))  # type: ignore[misc]


def take_back_lost(held: Held, lost: Some) -> None:
    """The broker has lost some of what nobody has claimed yet."""
    database = held.database
    sent = database.read(lambda conn: feeding.dispatched_before(conn, "standard", -1))
    gone = lost(sorted(sent, key=lambda message: (message.job_id, message.index)))
    database.transact(lambda conn: feeding.take_back_lost(conn, gone))
    sent_steps = database.read(lambda conn: steps.dispatched_before(conn, -1))
    gone_steps = lost(sorted(sent_steps, key=lambda message: message.step_id))
    database.transact(lambda conn: steps.take_back_lost(conn, gone_steps))


def look_after_forgotten(held: Held) -> None:
    """What should find nothing to do: forgotten jobs, and a clock that was set back."""
    held.database.transact(offers.find_forgotten)
    for mend in (set_back.mend_work, set_back.mend_webhooks, set_back.mend_ends):
        held.database.transact(lambda conn, mend=mend: mend(conn, LONGEST))  # type: ignore[misc]


def age(held: Held, job_id: str) -> None:
    """A job reaches the age limit, if it still lives, and is ended."""
    query = text("UPDATE job SET created_at = 1.0, retried_at = NULL WHERE id = :id")
    held.database.transact(lambda conn: conn.execute(query, {"id": job_id}))
    for old in held.database.read(lambda conn: jobs.overdue_ids(conn, 1e6)):
        held.database.transact(
            lambda conn, old=old: jobs.end(conn, old, JobState.FAILED, code="too-old")  # type: ignore[misc]
        )


def expire(held: Held, job_id: str) -> None:
    """A job's retention is over, if it has ended; and every expired job is forgotten."""
    database = held.database
    query = text("UPDATE job SET expires_at = 1.0 WHERE id = :id AND expires_at IS NOT NULL")
    database.transact(lambda conn: conn.execute(query, {"id": job_id}))
    for due in database.read(lambda conn: expiry.due(conn, 100)):
        database.transact(lambda conn, due=due: expiry.expire(conn, due, reuse_s=KEEP_S))  # type: ignore[misc]
    for left in database.read(lambda conn: expiry.unfinished(conn, 100)):
        forget(database, left, reuse_s=KEEP_S)


def delete_objects(held: Held) -> None:
    """Delete what nobody refers to, and what somebody has begun to delete."""
    keys = begin_to_delete_objects(held)
    held.database.transact(lambda conn: objects.forget(conn, keys))


def begin_to_delete_objects(held: Held) -> list[str]:
    """A moment after they were condemned; and die between the store and the ledger."""
    keys = held.database.transact(lambda conn: objects.doom(conn, grace_s=-1.0, limit=100))
    return keys + held.database.read(
        lambda conn: objects.left_doomed(conn, after_s=-1.0, limit=100)
    )
