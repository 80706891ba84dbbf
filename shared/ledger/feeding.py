"""Which waiting segments are marked for dispatch, and which dispatches are still unclaimed.

Who is next is decided by `shared.scheduling`; here its choice is carried out. Knows rows and
messages; the broker they are sent to is `shared.dispatch`'s business.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    String,
    bindparam,
    func,
    select,
    update,
)

from shared.ledger import offers
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.ledger.given import as_rows, field, given
from shared.messages import SynthMessage
from shared.scheduling.choose import choose
from shared.scheduling.offer import Pick
from shared.scheduling.pools import Pool
from shared.segments import SegmentState

# `index` is renamed: a result row is a tuple, and a tuple's index is a method
_c = t.segment.c
_MESSAGE: tuple[ColumnElement[Any], ...] = (
    _c.job_id,
    _c.index.label("number"),
    _c.dispatch_no,
    _c.chars,
    _c.due_at,
    _c.tier,
)
_PICKS = given("the_picks")
_MARK = (
    update(t.segment)
    .where(
        _c.job_id == field(_PICKS, 0, String),
        _c.index == field(_PICKS, 1, Integer),
        t.IS_PENDING,
    )
    .values(state=SegmentState.DISPATCHED, dispatch_no=_c.dispatch_no + 1, dispatched_at=db_now())
    .returning(*_MESSAGE)
)


def fill(conn: Connection, pool: Pool, room: int) -> list[SynthMessage]:
    """Let the policy choose up to `room` segments; mark them, and return their messages in order.

    The caller holds the locks of the pool's tiers.
    """
    if room <= 0:
        return []
    now = read_clock(conn)
    kept = offers.load(conn, pool.name)
    state, sent_s = kept.state, kept.sent_s
    messages: list[SynthMessage] = []
    while room > 0:
        choice = choose(
            pool,
            [offers.offer(conn, tier, room, now) for tier in pool.tiers],
            state,
            room=room,
            now_s=now,
            elsewhere_s=kept.elsewhere_s,
        )
        if not choice.picks:
            break
        messages += mark(conn, choice.picks)
        state = choice.pool
        sent_s += sum(pick.audio_s for pick in choice.picks)
        offers.record(conn, pool.name, choice, sent_s=sent_s)
        room -= len(choice.picks)
        if not choice.short:
            break
    return messages


def mark(conn: Connection, picks: Sequence[Pick]) -> list[SynthMessage]:
    """Mark waiting segments as dispatched and return their messages, in the order given.

    The caller holds the locks of their tiers, so that two feeders never mark one twice, and then
    records the choice (`offers.record`), or refreshes the jobs' heads.
    """
    if not picks:
        return []
    order = [(pick.job_id, pick.index) for pick in picks]
    rows = conn.execute(_MARK, {"the_picks": as_rows(order)}).all()
    messages = {(m.job_id, m.index): m for m in map(_message, rows)}
    return [messages[key] for key in order if key in messages]


def dispatched_before(conn: Connection, tier: str, age_s: float) -> list[SynthMessage]:
    """Messages of a tier dispatched longer ago than `age_s` and claimed by nobody yet."""
    c = t.segment.c
    rows = conn.execute(
        select(*_MESSAGE).where(
            c.tier == tier,
            t.IS_IN_FLIGHT,
            c.state == SegmentState.DISPATCHED,
            c.dispatched_at < read_clock(conn) - age_s,
        )
    )
    return [_message(row) for row in rows]


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
    offers.refresh_heads(conn, [message.job_id for message in lost])
    return taken


_IN_FLIGHT = select(func.count()).where(
    t.segment.c.tier == bindparam("the_tier"),
    t.IS_IN_FLIGHT,
)


def in_flight(conn: Connection, tier: str) -> int:
    """Segments of a tier that are dispatched or leased: the window's fill."""
    return int(conn.execute(_IN_FLIGHT, {"the_tier": tier}).scalar_one())
