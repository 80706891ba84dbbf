"""How far jobs are, where they stand in their tier's queue, and when they should be done."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, func, literal_column, select, text

from shared.jobs import AudioFormat, JobState
from shared.ledger import backlog, company, marks
from shared.ledger import tables as t
from shared.ledger.company import Rendered
from shared.scheduling.company import Neighbour, expected_share, time_left_s
from shared.scheduling.cost import TYPICAL, Cost, cost_of
from shared.scheduling.pace import Assembled, Mark, assembly_s, window_base
from shared.tiers import Tier

POSITION_CAP = 1_000  # further back nobody counts
_ASSEMBLIES_READ = 20
_SPOKEN_READ = 250


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is. `audio_s` counts finished segments; `eta_s` is None until a rate shows.

    `queue_position` counts the jobs of its tier that wait and are due before it, POSITION_CAP at
    most; None when the job does not wait for the engines (paused, assembling, ended).
    """

    segments_total: int
    segments_done: int
    segments_quarantined: int
    segments_skipped: int
    fraction: float
    audio_s: float
    eta_s: float | None
    queue_position: int | None
    parts_total: int
    parts_done: int


@dataclass(frozen=True, slots=True)
class Past:
    """What estimates are made from.

    Marks by job id, all jobs that render now or did a moment ago, what segments cost by tier, and
    past assemblies by (tier, format).
    """

    marks: Mapping[str, Sequence[Mark]]
    company: Sequence[Rendered]
    costs: Mapping[str, Cost]
    assembled: Mapping[tuple[str, str], Sequence[Assembled]]


_PART_SUMS = {
    "remaining": t.part.c.remaining,
    "quarantined": t.part.c.quarantined,
    "chars_total": t.part.c.chars_total,
    "chars_done": t.part.c.chars_done,
    "audio_s": t.part.c.audio_s,
}


def columns() -> list[ColumnElement[Any]]:
    """A job's parts summed up, and its place in the queue, to be selected beside `job`.

    Scalar subqueries, since SQLite has no LATERAL.
    """
    sums = [
        select(func.coalesce(func.sum(column), 0))
        .where(t.part.c.job_id == t.job.c.id)
        .correlate(t.job)
        .scalar_subquery()
        .label(label)
        for label, column in _PART_SUMS.items()
    ]
    return [*sums, _position().label("queue_position")]


def _position() -> ColumnElement[int | None]:
    ahead = t.job.alias("ahead")
    some = (
        select(literal_column("1"))
        .select_from(ahead)
        .where(
            text("ahead.state IN ('accepted', 'planning', 'rendering')"),  # its partial index
            ahead.c.tier == t.job.c.tier,
            ahead.c.due_at <= t.job.c.due_at,
            (ahead.c.due_at < t.job.c.due_at) | (ahead.c.id < t.job.c.id),
            ahead.c.paused_at.is_(None),
        )
        .limit(POSITION_CAP)
        .correlate(t.job)
        .subquery()
    )
    count = select(func.count()).select_from(some).scalar_subquery()
    return case((t.IS_WAITING_JOB & t.job.c.paused_at.is_(None), count))


def past_of(conn: Connection, rows: Sequence[Row[Any]]) -> Past:
    """Read what the estimates of these jobs need, in a few short queries however many they are."""
    rendering = {row.id: row for row in rows if row.state == JobState.RENDERING}
    tiers = {row.tier for row in rows if row.state == JobState.RENDERING and row.chars_done}
    kinds = {
        (row.tier, row.spec["format"])
        for row in rows
        if row.state in {JobState.RENDERING, JobState.ASSEMBLING}
    }
    left = marks.recent(conn, list(rendering))
    bases = [window_base(left[id_], _mark_now(rendering[id_])) for id_ in left]
    since = min((base.at for base in bases if base is not None), default=None)
    return Past(
        left,
        [] if since is None else company.read(conn, since),
        {tier: cost_of(backlog.spoken(conn, Tier(tier), limit=_SPOKEN_READ)) for tier in tiers},
        {(tier, format_): _assembled(conn, tier, format_) for tier, format_ in kinds},
    )


def _assembled(conn: Connection, tier: str, format_: str) -> list[Assembled]:
    """What assembling took from the last rendered segment to the end, of late."""
    c = t.job.c
    audio_s = (
        select(func.sum(t.part.c.audio_s))
        .where(t.part.c.job_id == c.id)
        .correlate(t.job)
        .scalar_subquery()
    )
    rows = conn.execute(
        select(c.spec, c.parts_total, c.rendered_at, c.ended_at, audio_s.label("audio_s"))
        .where(t.IS_SETTLED_JOB, c.tier == tier)
        .order_by(c.ended_at.desc())
        .limit(_ASSEMBLIES_READ)
    )
    return [
        Assembled(row.audio_s / row.parts_total, row.ended_at - row.rendered_at)
        for row in rows
        if row.rendered_at is not None and row.spec["format"] == format_
    ]


def progress_of(row: Row[Any], past: Past) -> Progress:
    """The progress of a row that was selected with `columns` and the clock as `now`."""
    state = JobState(row.state)
    settled = row.segments_total - row.remaining if row.parts_total else 0
    fraction = row.chars_done / row.chars_total if row.chars_total else 0.0
    whole = state in {JobState.COMPLETED, JobState.PARTIAL}
    return Progress(
        segments_total=row.segments_total,
        segments_done=settled - row.quarantined,
        segments_quarantined=row.quarantined,
        segments_skipped=row.segments_skipped,
        fraction=1.0 if whole else fraction,
        audio_s=row.audio_s,
        eta_s=0.0 if whole else _eta_s(row, state, past),
        queue_position=row.queue_position,
        parts_total=row.parts_total,
        parts_done=row.parts_total - row.parts_remaining,
    )


def _mark_now(row: Row[Any]) -> Mark:
    return Mark(row.now, row.chars_done, row.segments_total - row.remaining)


def _neighbours(row: Row[Any], rendered: Sequence[Rendered]) -> list[Neighbour]:
    """All others, with what the policy will give them for each character of this job."""
    owners = Counter((one.tier, one.tenant) for one in rendered if one.live)
    mine = (Tier(row.tier), row.tenant)
    return [
        replace(
            one.neighbour,
            expected=expected_share(mine, (one.tier, one.tenant), owners),
        )
        for one in rendered
        if one.id != row.id
    ]


def _eta_s(row: Row[Any], state: JobState, past: Past) -> float | None:
    """Time left: the rest of the rendering at its recent rate, then the last part's assembly."""
    if row.paused or not row.chars_done or state.ended:
        return None
    audio_s = row.audio_s * row.chars_total / row.chars_done
    format_ = AudioFormat(row.spec["format"])
    assembled = past.assembled.get((row.tier, format_), ())
    last_s = assembly_s(audio_s / row.parts_total, format_, assembled)
    if state is JobState.ASSEMBLING:
        return max(0.0, last_s - float(row.now - row.rendered_at))
    left_s = time_left_s(
        past.marks.get(row.id, ()),
        _mark_now(row),
        past.costs.get(row.tier, TYPICAL),
        chars_left=row.chars_total - row.chars_done,
        segments_left=row.remaining,
        neighbours=_neighbours(row, past.company),
    )
    return None if left_s is None else left_s + last_s
