"""Audio that the store has lost or damaged: its segments wait to be spoken again.

Whoever would have assembled it finds out and tells. Knows rows; what the store really holds is the
caller's finding.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, select, update

from shared.errors import LedgerBusyError
from shared.jobs import JobState
from shared.ledger import jobs, marks, objects, renderings, steps
from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.ledger.offers import refresh_heads
from shared.ledger.segment_records import SegmentRecord
from shared.ledger.steps import StepClaim
from shared.segments import SegmentState

_c, _p, _j = t.segment.c, t.part.c, t.job.c
_FOUND: tuple[ColumnElement[Any], ...] = (
    _c.index.label("number"),
    _c.object_key,
    _c.offset_bytes,
    _c.chars,
    _c.samples,
    _c.rate_hz,
    _c.claimed_at,
    _c.losses,
)
_AT_ONCE = 1_000


class Healing(Enum):
    """What became of a part with lost audio."""

    NOT_OURS = "not ours"  # the step is another's, or the job has ended: nothing was changed
    REOPENED = "reopened"  # its segments wait; its assembly comes again when they are in
    GIVEN_UP = "given up"  # the store loses the same audio again and again: the job has failed


def reopen(
    conn: Connection, claimed: StepClaim, lost: Sequence[SegmentRecord], *, most_losses: int
) -> Healing:
    """Let segments of a part that is being assembled be spoken again, under new tokens.

    Their audio is not reused by anybody from now on, nor is anything else that lies in the same
    objects. Locks are taken in the order of a commit. A segment that has lost its audio
    `most_losses` times, for each round of the job, ends it as failed. Raises LedgerBusyError.
    """
    if not steps.withdraw(conn, claimed):
        return Healing.NOT_OURS
    places = {row.index: (row.object_key, row.offset_bytes) for row in lost}
    rows = _lock(conn, claimed, places)
    if not rows:
        raise LedgerBusyError("somebody has just changed what was found lost")
    keys = {str(row.object_key) for row in rows}
    job = conn.execute(select(_j.round, _j.spec).where(_j.id == claimed.job_id)).one()
    hopeless = [row for row in rows if row.losses + 1 >= most_losses * (1 + job.round)]
    if hopeless:
        renderings.distrust(conn, keys)
        worst = hopeless[0]
        why = (
            f"the store lost or damaged the audio of piece {worst.number} {worst.losses + 1} times"
        )
        jobs.end(conn, claimed.job_id, JobState.FAILED, code="audio-lost", message=why)
        return Healing.GIVEN_UP
    _reopen_segments(
        conn, claimed.job_id, [row.number for row in rows], follow=job.spec.get("reuse", True)
    )
    objects.release(conn, Counter(str(row.object_key) for row in rows), keep_s=0.0)
    renderings.distrust(conn, keys)
    _reopen_part(conn, claimed, rows)
    _reopen_job(conn, claimed.job_id, reused=sum(row.claimed_at is None for row in rows))
    marks.forget(conn, claimed.job_id)
    refresh_heads(conn, [claimed.job_id])
    return Healing.REOPENED


def _lock(
    conn: Connection, claimed: StepClaim, places: Mapping[int, tuple[str | None, int]]
) -> list[Row[Any]]:
    """The rows of these segments that still point there."""
    found = list[Row[Any]]()
    for some in _chunks(places):
        rows: Sequence[Row[Any]] = conn.execute(
            select(*_FOUND)
            .where(
                _c.job_id == claimed.job_id,
                _c.part == claimed.part,
                _c.index.in_(some),
                _c.state == SegmentState.DONE,
            )
            .order_by(_c.index)  # locks are taken in one order
            .with_for_update()
        ).all()
        found += [r for r in rows if (r.object_key, r.offset_bytes) == places[r.number]]
    return found


def _reopen_segments(
    conn: Connection, job_id: str, indexes: Collection[int], *, follow: bool
) -> None:
    """Let them wait with a clean record; no token given out before may commit them.

    Those who `follow` take what another job, that found the same loss, has had spoken since.
    """
    for some in _chunks(indexes):
        conn.execute(
            update(t.segment)
            .where(_c.job_id == job_id, _c.index.in_(some))
            .values(
                state=SegmentState.PENDING,
                token=_c.token + 1,
                losses=_c.losses + 1,
                attempt=0,
                crashes=0,
                suspect=False,
                abandoned=0,
                blamed_token=0,
                lease_until=None,
                not_before=db_now(),
                follows=follow,
                claimed_at=None,
                done_at=None,
                object_key=None,
                offset_bytes=0,
                size_bytes=0,
                sha256=None,
                samples=0,
                rate_hz=0,
                error="the store had lost or damaged its audio",
            )
        )


def _reopen_part(conn: Connection, claimed: StepClaim, rows: Sequence[Row[Any]]) -> None:
    audio_s = sum(row.samples / row.rate_hz for row in rows)
    conn.execute(
        update(t.part)
        .where(_p.job_id == claimed.job_id, _p.index == claimed.part)
        .values(
            remaining=_p.remaining + len(rows),
            chars_done=_p.chars_done - sum(row.chars for row in rows),
            # sums of fractions: never below zero by a rounding
            audio_s=case((_p.audio_s > audio_s, _p.audio_s - audio_s), else_=0.0),
        )
    )


def _reopen_job(conn: Connection, job_id: str, *, reused: int) -> None:
    conn.execute(
        update(t.job)
        .where(_j.id == job_id)
        .values(
            parts_rendering=_j.parts_rendering + 1,
            segments_reused=_j.segments_reused - reused,
            state=case((_j.state == JobState.ASSEMBLING, JobState.RENDERING), else_=_j.state),
            rendered_at=None,
        )
    )


def _chunks(indexes: Collection[int]) -> list[list[int]]:
    ordered = sorted(indexes)
    return [ordered[n : n + _AT_ONCE] for n in range(0, len(ordered), _AT_ONCE)]
