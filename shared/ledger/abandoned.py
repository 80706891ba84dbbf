"""Segments whose lease ran out: back to the waiting ones, and what that says about them.

Nobody is there to say what happened, and a death takes all with it that its process held. So one
lost lease says nothing, and two in a row only that the sentence shall run alone. A lease lost while
it did (`blame.stand_alone`) is a crash alone, and counts as one.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, or_, update

from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.offers import refresh_heads
from shared.segments import SUSPICIOUS, SegmentState

_c = t.segment.c


@dataclass(frozen=True, slots=True)
class Lost:
    """A lease that ran out. `crashes`, if it ran alone, counts this one too; 0 if it did not."""

    job_id: str
    index: int
    token: int
    crashes: int


def take_back_expired(conn: Connection) -> list[Lost]:
    """Return segments whose lease ran out to the waiting ones."""
    was_alone = _c.alone_token == _c.token
    counts = and_(was_alone, _c.blamed_token < _c.token)
    rows = conn.execute(
        update(t.segment)
        .where(
            t.IS_IN_FLIGHT,
            _c.state == SegmentState.LEASED,
            _c.lease_until < read_clock(conn),
        )
        .values(
            state=SegmentState.PENDING,
            lease_until=None,
            error="lease expired",
            abandoned=_c.abandoned + 1,
            suspect=or_(_c.suspect, _c.abandoned + 1 >= SUSPICIOUS),
            crashes=_c.crashes + case((counts, 1), else_=0),
            blamed_token=case((counts, _c.token), else_=_c.blamed_token),
        )
        .returning(
            _c.job_id,
            _c.index.label("number"),
            _c.token,
            _c.crashes,
            was_alone.label("was_alone"),
        )
    ).all()
    refresh_heads(conn, [row.job_id for row in rows])
    return [Lost(r.job_id, r.number, r.token, r.crashes if r.was_alone else 0) for r in rows]
