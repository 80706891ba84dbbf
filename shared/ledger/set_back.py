"""What a database clock that was set back has left in the future is brought near the present.

Every lease, wait and dispatch is a time of the database's clock. Set back by an hour, it would keep
a dead worker's lease alive for an hour. (Set forward it needs no help: leases run out early, and
fencing makes that harmless.) Knows rows only; whether the clock was set back others must notice.
Each function is for a transaction of its own: their rows are locked by others in other orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, or_, select, update

from shared.ledger import tables as t
from shared.ledger import webhook_turns
from shared.ledger.clock import read_clock

LONGEST_WAIT_S = 60.0  # of a segment or step that was given back
_SPREAD = 1.1  # retries are drawn a tenth sooner or later


@dataclass(frozen=True, slots=True)
class Longest:
    """How far ahead a time of each kind may lie, in seconds.

    `tries_s[n]` comes before a delivery's try n + 1; `asked_s` is most that a receiver may ask for;
    `hold_s` is most that a webhook is left alone otherwise. `kept_s`: audio is kept for reuse.
    """

    lease_s: float
    delivery_lease_s: float
    tries_s: Sequence[float]
    asked_s: float
    hold_s: float
    progress_s: float
    kept_s: float


def mend_work(conn: Connection, longest: Longest) -> int:
    """Shorten leases and waits that lie impossibly far ahead. Returns how many.

    A holder that lives renews its lease, as ever; one that does not is found after its lease.
    """
    now = read_clock(conn)
    return (
        _mend_segments(conn, now, longest.lease_s)
        + _mend_steps(conn, now, longest.lease_s)
        + _mend_deliveries(conn, now, longest.delivery_lease_s)
    )


def mend_webhooks(conn: Connection, longest: Longest) -> int:
    """Shorten the waits of deliveries, and how long webhooks are left alone. Returns how many."""
    now = read_clock(conn)
    d, w = t.delivery.c, t.webhook.c
    wait = now + _longest_wait_s(d.tries, longest)
    hold = now + max(longest.hold_s, longest.asked_s) * _SPREAD
    late = select(d.webhook_id).where(t.IS_PENDING_DELIVERY, d.not_before > wait)
    struck = select(w.id).where(or_(w.id.in_(late), w.held_until > hold)).order_by(w.id)
    mended = 0
    for webhook_id in conn.execute(struck).scalars().all():
        webhook_turns.lock(conn, webhook_id)
        held = w.id == webhook_id, w.held_until > hold
        mended += conn.execute(update(t.webhook).where(*held).values(held_until=hold)).rowcount
        mended += conn.execute(
            update(t.delivery)
            .where(t.IS_PENDING_DELIVERY, d.webhook_id == webhook_id, d.not_before > wait)
            .values(not_before=wait)
        ).rowcount
        webhook_turns.refresh(conn, webhook_id)
    return mended


def mend_ends(conn: Connection, longest: Longest) -> int:
    """Likewise since when jobs and audio are over, and when progress is told. Returns how many."""
    now = read_clock(conn)
    j, o = t.job.c, t.stored_object.c
    told, kept = now + longest.progress_s, now + longest.kept_s
    mended = conn.execute(
        update(t.job).where(t.HAS_PROGRESS_DUE, j.progress_at > told).values(progress_at=told)
    ).rowcount
    mended += conn.execute(
        update(t.job).where(t.IS_UNSWEPT_JOB, j.unswept_since > now).values(unswept_since=now)
    ).rowcount
    mended += conn.execute(
        update(t.stored_object)
        .where(t.IS_CONDEMNED, or_(o.condemned_at > kept, o.doomed_at > now))
        .values(
            condemned_at=_at_most(o.condemned_at, kept),
            doomed_at=_at_most(o.doomed_at, now),
        )
    ).rowcount
    return mended


def _mend_segments(conn: Connection, now: float, lease_s: float) -> int:
    s, wait, lease = t.segment.c, now + LONGEST_WAIT_S, now + lease_s
    mended = conn.execute(
        update(t.segment).where(t.IS_IN_FLIGHT, s.lease_until > lease).values(lease_until=lease)
    ).rowcount
    mended += conn.execute(
        update(t.segment).where(t.IS_PENDING, s.not_before > wait).values(not_before=now)
    ).rowcount
    conn.execute(
        update(t.segment).where(t.IS_IN_FLIGHT, s.dispatched_at > now).values(dispatched_at=now)
    )
    conn.execute(update(t.node).where(t.node.c.heartbeat_at > now).values(heartbeat_at=now))
    return mended


def _mend_steps(conn: Connection, now: float, lease_s: float) -> int:
    p, lease = t.step.c, now + lease_s
    late = p.not_before > now + LONGEST_WAIT_S
    mended = conn.execute(
        update(t.step)
        .where(t.IS_OPEN_STEP, (p.lease_until > lease) | late)
        .values(
            lease_until=_at_most(p.lease_until, lease),
            not_before=case((late, now), else_=p.not_before),
        )
    ).rowcount
    conn.execute(
        update(t.step).where(t.IS_OPEN_STEP, p.dispatched_at > now).values(dispatched_at=now)
    )
    return mended


def _mend_deliveries(conn: Connection, now: float, lease_s: float) -> int:
    d, lease = t.delivery.c, now + lease_s
    mended = conn.execute(
        update(t.delivery)
        .where(t.IS_DELIVERY_IN_FLIGHT, d.lease_until > lease)
        .values(lease_until=lease)
    ).rowcount
    conn.execute(
        update(t.delivery)
        .where(t.IS_DELIVERY_IN_FLIGHT, d.dispatched_at > now)
        .values(dispatched_at=now)
    )
    return mended


def _longest_wait_s(tries: ColumnElement[int], longest: Longest) -> ColumnElement[float]:
    """What a delivery may still have to wait, by the tries that it has had: none before the first.

    Which receiver asked for how long is not written down, so any may have asked for the most.
    """
    waits = {
        number: max(wait_s * _SPREAD, longest.asked_s)
        for number, wait_s in enumerate(longest.tries_s)
        if number
    }
    most = max(waits.values(), default=longest.asked_s)
    return case({0: 0.0, **waits}, value=tries, else_=most)


def _at_most(column: ColumnElement[float], most: float) -> ColumnElement[float]:
    return case((column > most, most), else_=column)
