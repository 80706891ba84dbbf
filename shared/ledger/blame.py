"""What is held against a segment: crashes alone, and the suspicion of being their cause.

Evidence outlives the lease. An engine that hangs shows no progress, so the lease of the sentence
that hangs it has always run out before its host is given up; were only the holder of the newest
token believed, such a sentence would go from node to node for ever.

A host's death has a witness, its consumer. A consumer's or a node's has none, so who runs a suspect
writes down beforehand that it stands alone: if the lease runs out under that note
(`shared.ledger.abandoned`), this is a crash alone too, until its holder turns up after all.
"""

from dataclasses import dataclass

from sqlalchemy import (
    Boolean,
    Connection,
    Float,
    Integer,
    String,
    and_,
    bindparam,
    case,
    or_,
    update,
)

from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.ledger.segments import JOB_RENDERS, THE_SEGMENT, TOKEN, Claim
from shared.segments import SegmentState

_c = t.segment.c
_OPEN = _c.state.in_((SegmentState.PENDING, SegmentState.DISPATCHED, SegmentState.LEASED))
_counts = and_(bindparam("the_crash", type_=Boolean), _c.blamed_token < TOKEN)
_TESTIFY = (
    update(t.segment)
    .where(
        THE_SEGMENT,
        # of the engine that speaks it now, not of the one that gave it up before
        _c.content_key == bindparam("the_content", type_=String),
        _OPEN,
        JOB_RENDERS,
    )
    .values(
        crashes=_c.crashes + case((_counts, 1), else_=0),
        blamed_token=case((_counts, TOKEN), else_=_c.blamed_token),
        suspect=or_(_c.suspect, bindparam("the_suspicion", type_=Boolean)),
    )
    .returning(_c.crashes, _c.token)
)


@dataclass(frozen=True, slots=True)
class Blame:
    """How often a segment has crashed alone, and its newest token."""

    crashes: int
    token: int


def testify(conn: Connection, claimed: Claim, *, crashed: bool, suspect: bool) -> Blame | None:
    """Record what an engine did under a claim, whoever holds its segment now.

    `crashed` counts a crash alone, once for a claim and not for one older than the last that
    counted; a `suspect` runs alone from now on. None: it was settled meanwhile, or is another
    engine's.
    """
    words = {
        "the_content": claimed.content_key,
        "the_crash": crashed,
        "the_suspicion": suspect,
    }
    row = conn.execute(_TESTIFY, _where(claimed) | words).one_or_none()
    return None if row is None else Blame(row.crashes, row.token)


_STAND_ALONE = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN, _c.state == SegmentState.LEASED, JOB_RENDERS)
    .values(
        alone_token=bindparam("the_alone_token", type_=Integer),
        lease_until=db_now() + bindparam("the_lease_s", type_=Float),
    )
)


def stand_alone(conn: Connection, claimed: Claim, *, alone: bool, lease_s: float) -> bool:
    """Note that from now on, or no longer, nothing else runs beside a claim; renews its lease.

    False: the claim is lost, stop working.
    """
    words = {"the_alone_token": claimed.token if alone else 0, "the_lease_s": lease_s}
    return conn.execute(_STAND_ALONE, _where(claimed) | words).rowcount == 1


_FORGIVE = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token >= TOKEN, _OPEN)
    .values(
        abandoned=0,
        crashes=_c.crashes - case((_c.blamed_token == TOKEN, 1), else_=0),
        blamed_token=case((_c.blamed_token == TOKEN, 0), else_=_c.blamed_token),
    )
)


def forgive(conn: Connection, claimed: Claim) -> None:
    """Take back what its lease's end said of a claim: its holder lives, and has nothing to say."""
    conn.execute(_FORGIVE, _where(claimed))


def _where(claimed: Claim) -> dict[str, object]:
    return {
        "the_job": claimed.job_id,
        "the_index": claimed.index,
        "the_token": claimed.token,
    }
