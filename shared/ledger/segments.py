"""Segments in the ledger: claim, renew, release. Every move is one conditional update.

The right to commit is the fencing token: it grows with every claim, so second deliveries, zombies
and races find their WHERE clause empty and change nothing.
"""

from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    Float,
    Integer,
    String,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    update,
)

from shared.jobs import Fallback, JobState
from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.ledger.offers import refresh_heads
from shared.segments import SUSPICIOUS, SegmentState


@dataclass(frozen=True, slots=True)
class Claim:
    """A leased segment: all that a node needs to render it, and the token to commit it with."""

    job_id: str
    index: int
    tenant: str
    token: int
    take: int
    text: str
    content_key: str
    tier: str
    due_at: float
    engine: str
    voice: str
    language: str
    speed: float
    crashes: int
    suspect: bool
    fallback: Fallback | None = None  # who may try next; None when there is nobody
    follows: bool = False  # its audio may be there by now


# The statements of the hot path are built once: building one costs as much as running it.
JOB, _INDEX = bindparam("the_job", type_=String), bindparam("the_index", type_=Integer)
TOKEN, _NUMBER = bindparam("the_token", type_=Integer), bindparam("the_number", type_=Integer)
_LEASE_S = bindparam("the_lease_s", type_=Float)
_c = t.segment.c
THE_SEGMENT = and_(_c.job_id == JOB, _c.index == _INDEX)
JOB_RENDERS = exists().where(t.job.c.id == JOB, t.job.c.state == JobState.RENDERING)
_JOB_GOES_ON = exists().where(
    t.job.c.id == JOB, t.job.c.state == JobState.RENDERING, t.job.c.paused.is_(False)
)

_CLAIM = (
    update(t.segment)
    .where(
        THE_SEGMENT,
        _c.dispatch_no == _NUMBER,
        or_(
            _c.state == SegmentState.DISPATCHED,
            # One lost while it ran alone is left to the scheduler: that counts (`abandoned`).
            and_(
                _c.state == SegmentState.LEASED,
                _c.lease_until < db_now(),
                _c.alone_token != _c.token,
            ),
        ),
        _JOB_GOES_ON,
    )
    .values(
        abandoned=case((_c.state == SegmentState.LEASED, _c.abandoned + 1), else_=_c.abandoned),
        suspect=or_(
            _c.suspect,
            and_(_c.state == SegmentState.LEASED, _c.abandoned + 1 >= SUSPICIOUS),
        ),
        state=SegmentState.LEASED,
        attempt=_c.attempt + 1,
        token=_c.token + 1,
        lease_until=db_now() + _LEASE_S,
        claimed_at=db_now(),
    )
    .returning(
        _c.token,
        _c.take,
        _c.text,
        _c.content_key,
        _c.tier,
        _c.due_at,
        _c.crashes,
        _c.suspect,
        _c.fallback,
        _c.follows,
    )
)
_JOB_OF_CLAIM = select(t.job.c.tenant, t.job.c.spec).where(t.job.c.id == JOB)


def claim(
    conn: Connection, job_id: str, index: int, dispatch_no: int, *, lease_s: float
) -> Claim | None:
    """Lease a segment, or return None when the message is stale, or the job ended or paused."""
    where = {"the_job": job_id, "the_index": index, "the_number": dispatch_no}
    row = conn.execute(_CLAIM, where | {"the_lease_s": lease_s}).one_or_none()
    if row is None:
        return None
    job = conn.execute(_JOB_OF_CLAIM, {"the_job": job_id}).one()
    named = job.spec.get("fallback")
    fallback = None if named is None else Fallback.model_validate(named)
    engine, voice = job.spec["engine"], job.spec["voice"]
    if row.fallback and fallback is not None:
        engine, voice, fallback = fallback.engine, fallback.voice, None
    return Claim(
        job_id=job_id,
        index=index,
        tenant=job.tenant,
        token=row.token,
        take=row.take,
        text=row.text,
        content_key=row.content_key,
        tier=row.tier,
        due_at=row.due_at,
        engine=engine,
        voice=voice,
        language=job.spec["language"],
        speed=job.spec["speed"],
        crashes=row.crashes,
        suspect=row.suspect,
        fallback=fallback,
        follows=row.follows,
    )


_RENEW = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN, _c.state == SegmentState.LEASED, JOB_RENDERS)
    .values(lease_until=db_now() + _LEASE_S)
)


def renew(conn: Connection, job_id: str, index: int, token: int, *, lease_s: float) -> bool:
    """Extend a lease because its host shows progress. False: the claim is lost, stop working."""
    where = {"the_job": job_id, "the_index": index, "the_token": token}
    return conn.execute(_RENEW, where | {"the_lease_s": lease_s}).rowcount == 1


IS_UNSETTLED = or_(
    *(_c.state == s for s in (SegmentState.LEASED, SegmentState.PENDING, SegmentState.DISPATCHED))
)
_FALL_BACK = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN, IS_UNSETTLED, JOB_RENDERS)
    .values(
        state=SegmentState.PENDING,
        token=_c.token + 1,  # whoever still holds it speaks for the engine that gave it up
        fallback=True,
        content_key=bindparam("the_key"),
        attempt=case((_c.state == SegmentState.LEASED, _c.attempt - 1), else_=_c.attempt),
        crashes=0,
        suspect=False,
        abandoned=0,
        blamed_token=0,
        not_before=db_now(),
        lease_until=None,
        error=bindparam("the_error"),
    )
)


def fall_back(
    conn: Connection, job_id: str, index: int, token: int, *, content_key: str, error: str
) -> bool:
    """Give a segment that its job's engine gave up to the fallback engine, with a clean record.

    `content_key` is the fallback's. No claim from before may commit any more: it would pass one
    engine's audio off as another's. False: this is not its newest token, or it is settled.
    """
    where = {"the_job": job_id, "the_index": index, "the_token": token}
    found = {"the_key": content_key, "the_error": error[:500]}
    if conn.execute(_FALL_BACK, where | found).rowcount != 1:
        return False
    refresh_heads(conn, [job_id])
    return True


_RELEASE = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN, _c.state == SegmentState.LEASED)
    .values(
        state=SegmentState.PENDING,
        attempt=_c.attempt - 1,
        abandoned=0,
        not_before=db_now() + bindparam("the_delay_s"),
        lease_until=None,
        error=bindparam("the_error"),
    )
)


def release(
    conn: Connection, job_id: str, index: int, token: int, *, delay_s: float, error: str
) -> bool:
    """Give a claim back for a later try; burns no attempt. False: it was not this token's."""
    where = {"the_job": job_id, "the_index": index, "the_token": token}
    reasons = {"the_delay_s": delay_s, "the_error": error[:500]}
    if conn.execute(_RELEASE, where | reasons).rowcount != 1:
        return False
    refresh_heads(conn, [job_id])
    return True


# When it may be sent is left as it was: it was sent, so that time has come.
_PUT_BACK = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN, _c.state == SegmentState.LEASED)
    .values(state=SegmentState.PENDING, attempt=_c.attempt - 1, lease_until=None)
)


def put_back(conn: Connection, job_id: str, index: int, token: int) -> bool:
    """Give a claim back that no engine has begun, because its job was paused.

    Nothing counts against the segment, and it may be sent again as soon as its job goes on. False:
    it was not this token's.
    """
    where = {"the_job": job_id, "the_index": index, "the_token": token}
    if conn.execute(_PUT_BACK, where).rowcount != 1:
        return False
    refresh_heads(conn, [job_id])
    return True


def counts_by_tier_and_state(conn: Connection) -> dict[tuple[str, str], int]:
    """Open segments by (tier, state), for metrics."""
    open_states = (SegmentState.PENDING, SegmentState.DISPATCHED, SegmentState.LEASED)
    rows = conn.execute(
        select(t.segment.c.tier, t.segment.c.state, func.count())
        .where(t.segment.c.state.in_(open_states))
        .group_by(t.segment.c.tier, t.segment.c.state)
    )
    return {(row[0], row[1]): row[2] for row in rows}
