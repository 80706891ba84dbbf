"""What a database clock that was set back has left in the future is brought near the present.

Every lease, wait and dispatch is a time of the database's clock. Set back by an hour, it would keep
a dead worker's lease alive for an hour. (Set forward it needs no help: leases run out early, and
fencing makes that harmless.) Knows rows only; whether the clock was set back others must notice.
"""

from sqlalchemy import ColumnElement, Connection, case, update

from shared.ledger import tables as t
from shared.ledger.clock import read_clock

LONGEST_WAIT_S = 60.0  # of a segment or step that was given back
ROUNDING_S = 0.001  # of the clock: what was leased in this very instant is not too far ahead


def mend(conn: Connection, *, lease_s: float, delivery_lease_s: float) -> int:
    """Shorten what lies impossibly far ahead. Returns how many leases and waits were shortened.

    A holder that lives renews its lease, as ever; one that does not is found after `lease_s`, a
    webhook's after `delivery_lease_s`. Webhooks wait for hours on purpose, so their waits stay.
    """
    now = read_clock(conn)
    latest = now + ROUNDING_S
    wait, lease, delivery = latest + LONGEST_WAIT_S, latest + lease_s, latest + delivery_lease_s
    s, p, n, d = t.segment.c, t.step.c, t.node.c, t.delivery.c
    mended = conn.execute(
        update(t.segment).where(t.IS_IN_FLIGHT, s.lease_until > lease).values(lease_until=lease)
    ).rowcount
    mended += conn.execute(
        update(t.segment).where(t.IS_PENDING, s.not_before > wait).values(not_before=now)
    ).rowcount
    conn.execute(
        update(t.segment).where(t.IS_IN_FLIGHT, s.dispatched_at > now).values(dispatched_at=now)
    )
    late = p.not_before > wait
    mended += conn.execute(
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
    mended += conn.execute(
        update(t.delivery)
        .where(t.IS_DELIVERY_IN_FLIGHT, d.lease_until > delivery)
        .values(lease_until=delivery)
    ).rowcount
    conn.execute(
        update(t.delivery)
        .where(t.IS_DELIVERY_IN_FLIGHT, d.dispatched_at > now)
        .values(dispatched_at=now)
    )
    conn.execute(update(t.node).where(n.heartbeat_at > now).values(heartbeat_at=now))
    return mended


def _at_most(column: ColumnElement[float], most: float) -> ColumnElement[float]:
    return case((column > most, most), else_=column)
