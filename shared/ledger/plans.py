"""Writing a plan into the ledger: parts first, then segments in chunks, under the step's token.

Totals are known before the first segment is written, so a part can never reach zero early, and a
plan step that dies half way is resumed from the last chunk, since planning is deterministic.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, func, insert, select, update

from shared.jobs import JobState
from shared.ledger import following, renderings, settling, steps
from shared.ledger import tables as t
from shared.ledger.clock import db_now, read_clock
from shared.ledger.offers import refresh_heads
from shared.ledger.renderings import Audio
from shared.ledger.settling import Tally
from shared.ledger.steps import StepClaim
from shared.segments import SegmentKind, SegmentState
from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part and what it will hold."""

    index: int
    title: str
    start: int
    end: int
    speech_segments: int
    speech_chars: int


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A segment to be written. `due_at` is absolute, in epoch seconds."""

    index: int
    part: int
    kind: SegmentKind
    start: int
    end: int
    text: str
    pause_after_s: float
    reason: str
    due_at: float
    content_key: str


@dataclass(frozen=True, slots=True)
class Written:
    """A chunk that is in: how many of its segments reuse audio, and steps it made ready to send."""

    reused: int
    step_ids: tuple[str, ...]


def chunks(rows: Iterable[PlannedSegment], size: int) -> Iterator[list[PlannedSegment]]:
    """Cut a plan into chunks of at least `size` rows, each to be written in one transaction.

    What is not spoken goes into the chunk of the speech before it. A part's assembly starts with
    its last sentence: whatever comes behind that must be in the ledger by then.
    """
    chunk: list[PlannedSegment] = []
    for row in rows:
        if len(chunk) >= size and (row.kind is SegmentKind.SPEECH or row.part != chunk[-1].part):
            yield chunk
            chunk = []
        chunk.append(row)
    if chunk:
        yield chunk


def start_planning(conn: Connection, job_id: str) -> tuple[float, float]:
    """Move an accepted job to planning; returns (created_at, due_at), which deadlines follow."""
    conn.execute(
        update(t.job)
        .where(t.job.c.id == job_id, t.job.c.state == JobState.ACCEPTED)
        .values(state=JobState.PLANNING)
    )
    row = conn.execute(select(t.job.c.created_at, t.job.c.due_at).where(t.job.c.id == job_id)).one()
    return row.created_at, row.due_at


def open_rendering(
    conn: Connection,
    claimed: StepClaim,
    parts: Sequence[PlannedPart],
    *,
    skipped: int,
    lease_s: float,
) -> bool:
    """Write all parts and let the job render. A second call for the same plan changes nothing.

    Returns False when the step's token is lost.
    """
    if not steps.renew(conn, claimed, lease_s=lease_s):
        return False
    opened = conn.execute(
        update(t.job)
        .where(t.job.c.id == claimed.job_id, t.job.c.state == JobState.PLANNING)
        .values(
            state=JobState.RENDERING,
            planned_at=db_now(),
            segments_total=sum(part.speech_segments for part in parts),
            segments_skipped=skipped,
            parts_total=len(parts),
            parts_rendering=len(parts),
            parts_remaining=len(parts),
        )
    )
    if opened.rowcount != 1:  # an earlier holder of the step came this far
        return True
    conn.execute(
        t.part.insert(),
        [
            {
                "job_id": claimed.job_id,
                "index": part.index,
                "title": part.title,
                "start": part.start,
                "end": part.end,
                "segments_total": part.speech_segments,
                "remaining": part.speech_segments,
                "chars_total": part.speech_chars,
            }
            for part in parts
        ],
    )
    return True


def written(conn: Connection, job_id: str) -> int:
    """How many segments of the plan are in the ledger already."""
    query = select(func.coalesce(func.max(t.segment.c.index), -1)).where(
        t.segment.c.job_id == job_id
    )
    return int(conn.execute(query).scalar_one()) + 1


def write_chunk(
    conn: Connection,
    claimed: StepClaim,
    tier: Tier,
    chunk: Sequence[PlannedSegment],
    *,
    lease_s: float,
    reuse_of: str | None = None,
) -> Written | None:
    """Insert the next segments of the plan, under the step's token. None: the token is lost.

    Segments whose audio the tenant `reuse_of` has already are done with it, and counted; those
    that it is having spoken just now wait for that.
    """
    if not steps.renew(conn, claimed, lease_s=lease_s):
        return None
    job_id = claimed.job_id
    there: Mapping[str, Audio] = {}
    leased: Mapping[str, float] = {}
    if reuse_of is not None:
        keys = [piece.content_key for piece in chunk if piece.kind is SegmentKind.SPEECH]
        there = renderings.reuse(conn, reuse_of, job_id, keys)
        leased = following.leaders(conn, reuse_of, tier, set(keys) - there.keys())
    now = read_clock(conn)
    spoken = [p for p in chunk if p.kind is SegmentKind.SPEECH and p.content_key in there]
    others = [p for p in chunk if p.kind is not SegmentKind.SPEECH or p.content_key not in there]
    settled = {"state": SegmentState.DONE, "done_at": now}
    rows = [_row(job_id, tier, p, now) | settled | asdict(there[p.content_key]) for p in spoken]
    waits = [_row(job_id, tier, p, now) | _following(leased, p.content_key) for p in others]
    for batch in (rows, waits):
        if batch:
            conn.execute(insert(t.segment), batch)
    step_ids = _settle_reused(conn, job_id, spoken, there) if spoken else ()
    refresh_heads(conn, [job_id])
    return Written(len(spoken), tuple(step_ids))


def _row(job_id: str, tier: Tier, piece: PlannedSegment, now: float) -> dict[str, object]:
    """A segment's columns. Speech waits, unless its audio is added to them; all else is done."""
    return {
        "job_id": job_id,
        "index": piece.index,
        "part": piece.part,
        "kind": piece.kind,
        "start": piece.start,
        "end": piece.end,
        "text": piece.text,
        "pause_after_s": piece.pause_after_s,
        "reason": piece.reason,
        "tier": tier,
        "chars": len(piece.text),
        "due_at": piece.due_at,
        "content_key": piece.content_key,
        "state": SegmentState.PENDING if piece.kind is SegmentKind.SPEECH else SegmentState.DONE,
        "done_at": None if piece.kind is SegmentKind.SPEECH else now,
    }


def _following(leased: Mapping[str, float], content_key: str) -> dict[str, object]:
    """Whose content is leased at this moment waits for it, until the lease has run out."""
    until = leased.get(content_key)
    return {"follows": until is not None, "not_before": until or 0.0}


def _settle_reused(
    conn: Connection, job_id: str, spoken: Sequence[PlannedSegment], there: Mapping[str, Audio]
) -> list[str]:
    """Count reused segments as a commit counts rendered ones. Returns steps that are ready."""
    tallies: dict[int, Tally] = {}
    for piece in spoken:
        audio = there[piece.content_key]
        tally = tallies.setdefault(piece.part, Tally())
        tally.add(piece.index, chars=len(piece.text), audio_s=audio.samples / audio.rate_hz)
    ready = settling.settle(conn, job_id, tallies)
    conn.execute(
        update(t.job)
        .where(t.job.c.id == job_id)
        .values(segments_reused=t.job.c.segments_reused + len(spoken))
    )
    return list(ready.values())


def finish_plan(conn: Connection, claimed: StepClaim) -> list[str] | None:
    """Close the plan step; parts without speech get their assembly step here.

    Returns those steps' ids, or None when the token is lost.
    """
    if not steps.finish(conn, claimed):
        return None
    silent = conn.execute(
        select(t.part.c.index).where(
            t.part.c.job_id == claimed.job_id, t.part.c.segments_total == 0
        )
    ).scalars()
    return [settling.part_rendered(conn, claimed.job_id, index) for index in silent.all()]
