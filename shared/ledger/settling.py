"""How a segment comes to its end: its audio is committed, or it is given up as a named gap.

Both count against the segment's part in the same transaction. Whoever reaches a part's zero starts
its assembly, and at the last part's the job moves on.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from shared.jobs import JobState, OnError
from shared.ledger import following, jobs, marks, objects, renderings, steps
from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.ledger.offers import refresh_heads
from shared.ledger.renderings import Audio
from shared.ledger.segments import IS_UNSETTLED, JOB, JOB_RENDERS, THE_SEGMENT, TOKEN
from shared.segments import SegmentState
from shared.steps import StepKind


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a commit: whether it counted, and a step that it made ready to send."""

    won: bool
    step_id: str | None = None


_c, _p = t.segment.c, t.part.c
_COMMIT_ANY = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN, JOB_RENDERS)
    .values(
        state=SegmentState.DONE,
        object_key=bindparam("the_key"),
        offset_bytes=bindparam("the_offset_bytes"),
        size_bytes=bindparam("the_size_bytes"),
        sha256=bindparam("the_sha256"),
        samples=bindparam("the_samples"),
        rate_hz=bindparam("the_rate_hz"),
        done_at=db_now(),
        lease_until=None,
        error=None,
    )
    .returning(_c.part, _c.chars, _c.content_key, _c.take)
)
_COMMIT = _COMMIT_ANY.where(_c.state == SegmentState.LEASED)
# The newest token may settle its segment even after its lease ran out (decision 0002).
_COMMIT_LATE = _COMMIT_ANY.where(IS_UNSETTLED)
_TENANT = select(t.job.c.tenant).where(t.job.c.id == JOB)
_COMMITTED_BEFORE = select(_c.index).where(
    THE_SEGMENT, _c.token == TOKEN, _c.state == SegmentState.DONE
)


def commit(
    conn: Connection, job_id: str, rendered: Sequence[tuple[int, int, Audio]]
) -> list[Committed]:
    """Record renderings of one job, given as (index, token, audio), each for itself.

    Each is counted against its part; a part's assembly starts at zero. One whose token is stale
    loses and changes nothing; the others are none the worse for it. A repeated commit of the same
    token reports success and counts once. The results are in the order given. From here on what
    won may be reused by other jobs of the tenant, in place of what was there for its content.
    """
    outcomes: dict[int, Committed] = {}
    tallies: dict[int, Tally] = {}
    made: dict[tuple[str, int], Audio] = {}
    refs = Counter[str]()
    late = False
    for index, token, audio in sorted(rendered, key=_index):  # locks are taken in one order
        where = {"the_job": job_id, "the_index": index, "the_token": token}
        row = conn.execute(_COMMIT, where | _columns(audio)).one_or_none()
        if row is None:
            row = conn.execute(_COMMIT_LATE, where | _columns(audio)).one_or_none()
            late = late or row is not None
        if row is None:
            before = conn.execute(_COMMITTED_BEFORE, where).one_or_none()
            outcomes[index] = Committed(won=before is not None)
            continue
        outcomes[index] = Committed(won=True)
        made[row.content_key, row.take] = audio
        refs[audio.object_key] += 1
        tally = tallies.setdefault(row.part, Tally())
        tally.add(index, chars=row.chars, audio_s=audio.samples / audio.rate_hz)
    if made:
        tenant = conn.execute(_TENANT, {"the_job": job_id}).scalar_one()
        following.wake(conn, tenant, {key for key, _ in made})
        objects.refer(conn, tenant, job_id, refs)
        renderings.record(conn, tenant, made)
    for index, step_id in settle(conn, job_id, tallies).items():
        outcomes[index] = Committed(won=True, step_id=step_id)
    if late:
        refresh_heads(conn, [job_id])  # it may have been waiting
    return [outcomes[index] for index, _, _ in rendered]


def _index(rendering: tuple[int, int, Audio]) -> int:
    return rendering[0]


def _columns(audio: Audio) -> dict[str, object]:
    return {
        "the_key": audio.object_key,
        "the_offset_bytes": audio.offset_bytes,
        "the_size_bytes": audio.size_bytes,
        "the_sha256": audio.sha256,
        "the_samples": audio.samples,
        "the_rate_hz": audio.rate_hz,
    }


_QUARANTINE = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN, IS_UNSETTLED, JOB_RENDERS)
    .values(
        state=SegmentState.QUARANTINED,
        error=bindparam("the_error"),
        lease_until=None,
        done_at=db_now(),
    )
    .returning(_c.part, _c.chars)
)


def quarantine(conn: Connection, job_id: str, index: int, token: int, error: str) -> Committed:
    """Give a segment up: it becomes a named gap and its part goes on without it.

    `token` is its newest, whether it is leased or its lease has run out. A job that would rather
    have nothing than a gap (`on_error`) fails here and now.
    """
    where = {"the_job": job_id, "the_index": index, "the_token": token}
    row = conn.execute(_QUARANTINE, where | {"the_error": error[:500]}).one_or_none()
    if row is None:
        return Committed(won=False)
    tally = Tally(quarantined=1)
    tally.add(index, chars=row.chars, audio_s=0.0)
    steps_ready = settle(conn, job_id, {row.part: tally})
    refresh_heads(conn, [job_id])  # it may have been waiting
    spec = conn.execute(select(t.job.c.spec).where(t.job.c.id == job_id)).scalar_one()
    if spec.get("on_error") == OnError.FAIL:
        why = f"piece {index} could not be spoken: {error[:300]}"
        jobs.end(conn, job_id, JobState.FAILED, code="segment-failed", message=why)
        return Committed(won=True)
    return Committed(won=True, step_id=steps_ready.get(index))


_SETTLE = (
    update(t.part)
    .where(_p.job_id == JOB, _p.index == bindparam("the_part"))
    .values(
        remaining=_p.remaining - bindparam("the_segments"),
        quarantined=_p.quarantined + bindparam("the_quarantined"),
        chars_done=_p.chars_done + bindparam("the_chars"),
        audio_s=_p.audio_s + bindparam("the_audio_s"),
    )
    .returning(_p.remaining, _p.audio_s, _p.marked_at, db_now().label("now"))
)
_FIRST_AUDIO = (
    update(t.job).where(t.job.c.id == JOB, t.job.c.started_at.is_(None)).values(started_at=db_now())
)


@dataclass(slots=True)
class Tally:
    """What one transaction settles of a part. `last` is the index of one of its segments."""

    segments: int = 0
    chars: int = 0
    audio_s: float = 0.0
    quarantined: int = 0
    last: int = 0

    def add(self, index: int, *, chars: int, audio_s: float) -> None:
        """Count one segment."""
        self.segments += 1
        self.chars += chars
        self.audio_s += audio_s
        self.last = index


def settle(conn: Connection, job_id: str, tallies: Mapping[int, Tally]) -> dict[int, str]:
    """Count settled segments; at a part's zero insert its assembly, at the last part's move on.

    Returns the steps that are ready, by `last`. Both counters live in single rows, so the row lock
    orders racing commits: exactly one of them sees zero. All parts are locked before the job, as
    everywhere, and in their order: two commits never wait for each other.
    """
    counted = {part: _count(conn, job_id, part, tallies[part]) for part in sorted(tallies)}
    ready: dict[int, str] = {}
    for part, row in counted.items():
        if row.audio_s == tallies[part].audio_s > 0:  # what was given up is not to be heard
            conn.execute(_FIRST_AUDIO, {"the_job": job_id})
        if (row.remaining or part) and marks.is_due(row.marked_at, row.now):
            marks.leave(conn, job_id, part, row.now)
        if row.remaining == 0:
            ready[tallies[part].last] = part_rendered(conn, job_id, part)
    return ready


def _count(conn: Connection, job_id: str, part: int, tally: Tally) -> Row[Any]:
    return conn.execute(
        _SETTLE,
        {
            "the_job": job_id,
            "the_part": part,
            "the_segments": tally.segments,
            "the_chars": tally.chars,
            "the_audio_s": tally.audio_s,
            "the_quarantined": tally.quarantined,
        },
    ).one()


# With its last sentence a paused job has nothing left to pause: the flag goes, and the promise has
# moved by the time that it was set.
_stood_s = func.coalesce(db_now() - t.job.c.paused_at, 0.0)
_RENDERED = (
    update(t.job)
    .where(t.job.c.id == JOB, t.job.c.state == JobState.RENDERING)
    .values(
        state=JobState.ASSEMBLING,
        rendered_at=db_now(),
        paused=False,
        paused_at=None,
        due_at=t.job.c.due_at + _stood_s,
    )
)


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
        conn.execute(_RENDERED, {"the_job": job_id})
    return step_id
