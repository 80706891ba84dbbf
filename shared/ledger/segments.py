"""Segments in the ledger: claim, renew, commit, release. Every move is one conditional update.

The right to commit is the fencing token: it grows with every claim, so second deliveries, zombies
and races find their WHERE clause empty and change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    exists,
    func,
    or_,
    select,
    true,
    tuple_,
    update,
)

from shared.jobs import JobState
from shared.ledger import steps
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.messages import SynthMessage
from shared.segments import SegmentKind, SegmentState
from shared.steps import StepKind


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


@dataclass(frozen=True, slots=True)
class Audio:
    """Where a rendering lies, and what it is. `samples` per channel, mono, at `rate_hz`."""

    object_key: str
    sha256: str
    samples: int
    rate_hz: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a commit: whether it counted, and a step that it made ready to send."""

    won: bool
    step_id: str | None = None


_LIVE_JOB = (JobState.RENDERING,)


def _segment_is(job_id: str, index: int) -> ColumnElement[bool]:
    return and_(t.segment.c.job_id == job_id, t.segment.c.index == index)


def _job_renders(job_id: str) -> ColumnElement[bool]:
    return exists().where(t.job.c.id == job_id, t.job.c.state.in_(_LIVE_JOB))


def claim(
    conn: Connection, job_id: str, index: int, dispatch_no: int, *, lease_s: float
) -> Claim | None:
    """Lease a segment, or return None when this message is stale or the job is not rendering."""
    now = read_clock(conn)
    row = conn.execute(
        update(t.segment)
        .where(
            _segment_is(job_id, index),
            t.segment.c.dispatch_no == dispatch_no,
            or_(
                t.segment.c.state == SegmentState.DISPATCHED,
                and_(t.segment.c.state == SegmentState.LEASED, t.segment.c.lease_until < now),
            ),
            _job_renders(job_id),
        )
        .values(
            state=SegmentState.LEASED,
            attempt=t.segment.c.attempt + 1,
            token=t.segment.c.token + 1,
            lease_until=now + lease_s,
            claimed_at=now,
        )
        .returning(
            t.segment.c.token,
            t.segment.c.take,
            t.segment.c.text,
            t.segment.c.content_key,
            t.segment.c.tier,
            t.segment.c.due_at,
            t.segment.c.crashes,
            t.segment.c.suspect,
        )
    ).one_or_none()
    if row is None:
        return None
    job = conn.execute(select(t.job.c.tenant, t.job.c.spec).where(t.job.c.id == job_id)).one()
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
        engine=job.spec["engine"],
        voice=job.spec["voice"],
        language=job.spec["language"],
        speed=job.spec["speed"],
        crashes=row.crashes,
        suspect=row.suspect,
    )


def renew(conn: Connection, job_id: str, index: int, token: int, *, lease_s: float) -> bool:
    """Extend a lease because its host shows progress. False: the claim is lost, stop working."""
    renewed = conn.execute(
        update(t.segment)
        .where(
            _segment_is(job_id, index),
            t.segment.c.token == token,
            t.segment.c.state == SegmentState.LEASED,
            _job_renders(job_id),
        )
        .values(lease_until=db_now() + lease_s)
    )
    return renewed.rowcount == 1


_UNSETTLED = (SegmentState.LEASED, SegmentState.PENDING, SegmentState.DISPATCHED)


def commit(conn: Connection, job_id: str, index: int, token: int, audio: Audio) -> Committed:
    """Record a rendering, count it against its part, and start the part's assembly at zero.

    The newest token may commit even after its lease ran out, so that a slow store delays work
    but never makes it spin. A repeated commit of the same token reports success and counts once.
    """
    row = conn.execute(
        update(t.segment)
        .where(
            _segment_is(job_id, index),
            t.segment.c.token == token,
            t.segment.c.state.in_(_UNSETTLED),
            _job_renders(job_id),
        )
        .values(
            state=SegmentState.DONE,
            object_key=audio.object_key,
            sha256=audio.sha256,
            samples=audio.samples,
            rate_hz=audio.rate_hz,
            done_at=db_now(),
            lease_until=None,
            error=None,
        )
        .returning(t.segment.c.part, t.segment.c.chars)
    ).one_or_none()
    if row is None:
        already = conn.execute(
            select(t.segment.c.index).where(
                _segment_is(job_id, index),
                t.segment.c.token == token,
                t.segment.c.state == SegmentState.DONE,
            )
        ).one_or_none()
        return Committed(won=already is not None)
    conn.execute(
        update(t.job)
        .where(t.job.c.id == job_id, t.job.c.started_at.is_(None))
        .values(started_at=db_now())
    )
    step_id = _settle(
        conn,
        job_id,
        row.part,
        chars=row.chars,
        audio_s=audio.samples / audio.rate_hz,
        quarantined=0,
    )
    return Committed(won=True, step_id=step_id)


def quarantine(conn: Connection, job_id: str, index: int, token: int, error: str) -> Committed:
    """Give a segment up: it becomes a named gap and its part goes on without it."""
    row = conn.execute(
        update(t.segment)
        .where(
            _segment_is(job_id, index),
            t.segment.c.token == token,
            t.segment.c.state == SegmentState.LEASED,
            _job_renders(job_id),
        )
        .values(
            state=SegmentState.QUARANTINED, error=error[:500], lease_until=None, done_at=db_now()
        )
        .returning(t.segment.c.part, t.segment.c.chars)
    ).one_or_none()
    if row is None:
        return Committed(won=False)
    step_id = _settle(conn, job_id, row.part, chars=row.chars, audio_s=0.0, quarantined=1)
    return Committed(won=True, step_id=step_id)


def release(
    conn: Connection,
    job_id: str,
    index: int,
    token: int,
    *,
    delay_s: float,
    error: str,
    crashed: bool = False,
    suspect: bool = False,
) -> bool:
    """Give a claim back for a later try; burns no attempt. False: it was not this token's.

    `crashed` counts a crash alone against the segment; a `suspect` runs alone from now on.
    """
    released = conn.execute(
        update(t.segment)
        .where(
            _segment_is(job_id, index),
            t.segment.c.token == token,
            t.segment.c.state == SegmentState.LEASED,
        )
        .values(
            state=SegmentState.PENDING,
            attempt=t.segment.c.attempt - 1,
            crashes=t.segment.c.crashes + (1 if crashed else 0),
            suspect=true() if suspect else t.segment.c.suspect,
            not_before=db_now() + delay_s,
            lease_until=None,
            error=error[:500],
        )
    )
    return released.rowcount == 1


def take_back_expired(conn: Connection) -> int:
    """Return segments whose lease ran out to the waiting ones. Returns how many."""
    taken = conn.execute(
        update(t.segment)
        .where(
            t.segment.c.state == SegmentState.LEASED,
            t.segment.c.lease_until < read_clock(conn),
        )
        .values(state=SegmentState.PENDING, lease_until=None, error="lease expired")
    )
    return taken.rowcount


def feed(conn: Connection, tier: str, limit: int) -> list[SynthMessage]:
    """Mark up to `limit` waiting segments of a tier as dispatched and return their messages.

    Earliest due first. The caller holds the tier's lock, so that two feeders never overfill.
    """
    if limit <= 0:
        return []
    now, c = read_clock(conn), t.segment.c
    chosen = conn.execute(
        select(c.job_id, c.index.label("number"))
        .join(t.job, t.job.c.id == c.job_id)
        .where(
            c.state == SegmentState.PENDING,
            c.tier == tier,
            c.not_before <= now,
            t.job.c.state == JobState.RENDERING,
            t.job.c.paused.is_(False),
        )
        .order_by(c.due_at, c.job_id, c.index)
        .limit(limit)
    ).all()
    if not chosen:
        return []
    rows = conn.execute(
        update(t.segment)
        .where(
            tuple_(c.job_id, c.index).in_([(row.job_id, row.number) for row in chosen]),
            c.state == SegmentState.PENDING,
        )
        .values(state=SegmentState.DISPATCHED, dispatch_no=c.dispatch_no + 1, dispatched_at=now)
        .returning(*_message_columns())
    ).all()
    # UPDATE ... RETURNING gives no order
    return sorted(map(_message, rows), key=lambda m: (m.due_at, m.job_id, m.index))


def dispatched_before(conn: Connection, tier: str, age_s: float) -> list[SynthMessage]:
    """Messages of a tier dispatched longer ago than `age_s` and claimed by nobody yet."""
    c = t.segment.c
    rows = conn.execute(
        select(*_message_columns()).where(
            c.tier == tier,
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
                _segment_is(message.job_id, message.index),
                t.segment.c.state == SegmentState.DISPATCHED,
                t.segment.c.dispatch_no == message.dispatch_no,
            )
            .values(state=SegmentState.PENDING)
        ).rowcount
    return taken


def in_flight(conn: Connection, tier: str) -> int:
    """Segments of a tier that are dispatched or leased: the window's fill."""
    query = select(func.count()).where(
        t.segment.c.tier == tier,
        t.segment.c.state.in_((SegmentState.DISPATCHED, SegmentState.LEASED)),
    )
    return int(conn.execute(query).scalar_one())


def counts_by_tier_and_state(conn: Connection) -> dict[tuple[str, str], int]:
    """Open segments by (tier, state), for metrics."""
    open_states = (SegmentState.PENDING, SegmentState.DISPATCHED, SegmentState.LEASED)
    rows = conn.execute(
        select(t.segment.c.tier, t.segment.c.state, func.count())
        .where(t.segment.c.state.in_(open_states))
        .group_by(t.segment.c.tier, t.segment.c.state)
    )
    return {(row[0], row[1]): row[2] for row in rows}


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """One segment as stored, for listing, assembly and the manifest."""

    index: int
    part: int
    kind: SegmentKind
    state: SegmentState
    start: int
    end: int
    pause_after_s: float
    reason: str
    take: int
    attempt: int
    token: int
    object_key: str | None
    sha256: str | None
    samples: int
    rate_hz: int
    error: str | None


def page(
    conn: Connection, job_id: str, *, limit: int, after: int = -1, part: int | None = None
) -> list[SegmentRecord]:
    """Segments in order, after the given index, of one part or of all."""
    c = t.segment.c
    query = select(
        *(c[name] for name in SegmentRecord.__slots__),
    ).where(c.job_id == job_id, c.index > after)
    if part is not None:
        query = query.where(c.part == part)
    return [
        SegmentRecord(
            **{
                **row._asdict(),
                "kind": SegmentKind(row.kind),
                "state": SegmentState(row.state),
            }
        )
        for row in conn.execute(query.order_by(c.index).limit(limit))
    ]


def _settle(
    conn: Connection, job_id: str, part: int, *, chars: int, audio_s: float, quarantined: int
) -> str | None:
    """Count a settled segment; at a part's zero insert its assembly, at the last part's move on.

    Both counters live in single rows, so the row lock orders racing commits: exactly one of them
    sees zero.
    """
    remaining = conn.execute(
        update(t.part)
        .where(t.part.c.job_id == job_id, t.part.c.index == part)
        .values(
            remaining=t.part.c.remaining - 1,
            quarantined=t.part.c.quarantined + quarantined,
            chars_done=t.part.c.chars_done + chars,
            audio_s=t.part.c.audio_s + audio_s,
        )
        .returning(t.part.c.remaining)
    ).scalar_one()
    if remaining != 0:
        return None
    return part_rendered(conn, job_id, part)


def part_rendered(conn: Connection, job_id: str, part: int) -> str:
    """Insert a part's assembly step; when it was the last part to render, the job moves on."""
    step_id = steps.insert(conn, job_id, StepKind.ASSEMBLE, part=part)
    rendering = conn.execute(
        update(t.job)
        .where(t.job.c.id == job_id)
        .values(parts_rendering=t.job.c.parts_rendering - 1)
        .returning(t.job.c.parts_rendering)
    ).scalar_one()
    if rendering == 0:
        conn.execute(
            update(t.job)
            .where(t.job.c.id == job_id, t.job.c.state == JobState.RENDERING)
            .values(state=JobState.ASSEMBLING, rendered_at=db_now())
        )
    return step_id
