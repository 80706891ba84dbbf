"""Which waiting segments are marked for dispatch, and which dispatches are still unclaimed.

Knows rows and messages; the broker they are sent to is `shared.dispatch`'s business.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    bindparam,
    func,
    select,
    tuple_,
    update,
)

from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.offers import refresh_heads
from shared.messages import SynthMessage
from shared.scheduling.offer import Pick
from shared.segments import SegmentState


def mark(conn: Connection, picks: Sequence[Pick]) -> list[SynthMessage]:
    """Mark waiting segments as dispatched and return their messages, in the order given.

    The caller holds the locks of their tiers, so that two feeders never mark one twice.
    """
    if not picks:
        return []
    c = t.segment.c
    rows = conn.execute(
        update(t.segment)
        .where(
            tuple_(c.job_id, c.index).in_([(pick.job_id, pick.index) for pick in picks]),
            c.state == SegmentState.PENDING,
        )
        .values(
            state=SegmentState.DISPATCHED,
            dispatch_no=c.dispatch_no + 1,
            dispatched_at=read_clock(conn),
        )
        .returning(*_message_columns())
    ).all()
    refresh_heads(conn, [pick.job_id for pick in picks])
    messages = {(m.job_id, m.index): m for m in map(_message, rows)}
    order = [(pick.job_id, pick.index) for pick in picks]
    return [messages[key] for key in order if key in messages]


def dispatched_before(conn: Connection, tier: str, age_s: float) -> list[SynthMessage]:
    """Messages of a tier dispatched longer ago than `age_s` and claimed by nobody yet."""
    c = t.segment.c
    rows = conn.execute(
        select(*_message_columns()).where(
            c.tier == tier,
            t.IS_IN_FLIGHT,
            c.state == SegmentState.DISPATCHED,
            c.dispatched_at < read_clock(conn) - age_s,
        )
    )
    return [_message(row) for row in rows]


def _message_columns() -> list[ColumnElement[Any]]:
    c = t.segment.c
    # `index` is renamed: a result row is a tuple, and a tuple's index is a method
    return [c.job_id, c.index.label("number"), c.dispatch_no, c.chars, c.due_at, c.tier]


def _message(row: Row[Any]) -> SynthMessage:
    return SynthMessage(row.job_id, row.number, row.dispatch_no, row.chars, row.due_at, row.tier)


def take_back_lost(conn: Connection, lost: Sequence[SynthMessage]) -> int:
    """Return dispatches that the broker no longer holds to the waiting ones."""
    taken = 0
    for message in lost:
        taken += conn.execute(
            update(t.segment)
            .where(
                t.segment.c.job_id == message.job_id,
                t.segment.c.index == message.index,
                t.segment.c.state == SegmentState.DISPATCHED,
                t.segment.c.dispatch_no == message.dispatch_no,
            )
            .values(state=SegmentState.PENDING)
        ).rowcount
    refresh_heads(conn, [message.job_id for message in lost])
    return taken


_IN_FLIGHT = select(func.count()).where(
    t.segment.c.tier == bindparam("the_tier"),
    t.IS_IN_FLIGHT,
)


def in_flight(conn: Connection, tier: str) -> int:
    """Segments of a tier that are dispatched or leased: the window's fill."""
    return int(conn.execute(_IN_FLIGHT, {"the_tier": tier}).scalar_one())
