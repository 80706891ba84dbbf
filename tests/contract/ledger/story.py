"""Small verbs for ledger tests: bring a job to where the test begins."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from shared.ledger import (
    feeding,
    jobs,
    offers,
    plans,
    segment_records,
    segments,
    settling,
    step_turns,
    steps,
)
from shared.ledger.clock import db_now, read_clock
from shared.ledger.database import Database
from shared.ledger.plans import PlannedPart, PlannedSegment
from shared.ledger.segments import Claim
from shared.ledger.settling import Audio
from shared.ledger.steps import StepClaim
from shared.ledger.tables import segment, step
from shared.messages import SynthMessage
from shared.scheduling.offer import Pick
from shared.segments import SegmentKind
from shared.settings import DEFAULT_TIERS
from shared.steps import StepKind
from shared.tiers import Tier
from tests.factories import new_job

LEASE_S = 30.0
TARGET = DEFAULT_TIERS[Tier.STANDARD]


def submit(database: Database, **changes: object) -> str:
    return database.transact(lambda conn: jobs.accept(conn, new_job(**changes), TARGET)).job_id


def claim_step(
    database: Database,
    job_id: str,
    kind: StepKind,
    lease_s: float = LEASE_S,
    *,
    part: int | None = None,
) -> StepClaim:
    """Dispatch and lease the job's one waiting step of this kind, or of this part."""
    c = step.c
    waiting = select(c.id).where(c.job_id == job_id, c.kind == kind, c.state == "pending")
    if part is not None:
        waiting = waiting.where(c.part == part)

    dispatch = (
        update(step)
        .where(c.id.in_(waiting))
        .values(state="dispatched", dispatch_no=c.dispatch_no + 1, dispatched_at=db_now())
        .returning(c.id, c.dispatch_no)
    )
    sent = database.transact(lambda conn: conn.execute(dispatch).one())
    claimed = database.transact(
        lambda conn: steps.claim(conn, sent.id, sent.dispatch_no, lease_s=lease_s)
    )
    assert claimed is not None
    return claimed


def claim_any_step(database: Database, job_id: str) -> StepClaim | None:
    """Dispatch what waits and lease a step of the job, if there is one."""
    database.transact(lambda conn: step_turns.dispatch(conn, window=100))
    sent = database.read(lambda conn: steps.dispatched_before(conn, -1))
    mine = [message for message in sent if message.job_id == job_id]
    if not mine:
        return None
    return database.transact(
        lambda conn: steps.claim(conn, mine[0].step_id, mine[0].dispatch_no, lease_s=LEASE_S)
    )


def planned_rows(parts: int, per_part: int) -> tuple[list[PlannedPart], list[PlannedSegment]]:
    rows = [
        PlannedSegment(
            index=i,
            part=i // per_part,
            kind=SegmentKind.SPEECH,
            start=i * 10,
            end=i * 10 + 10,
            text=f"Number {i}.",
            pause_after_s=0.3,
            reason="",
            due_at=1_000.0 + i,
            content_key=f"key{i}",
        )
        for i in range(parts * per_part)
    ]
    described = [
        PlannedPart(
            p, f"Part {p}", p * per_part * 10, (p + 1) * per_part * 10, per_part, per_part * 9
        )
        for p in range(parts)
    ]
    return described, rows


def plan(
    database: Database,
    job_id: str,
    *,
    parts: int = 1,
    per_part: int = 3,
    reuse_of: str | None = None,
) -> None:
    claimed = claim_step(database, job_id, StepKind.PLAN)
    described, rows = planned_rows(parts, per_part)
    database.transact(lambda conn: plans.start_planning(conn, job_id))
    database.transact(
        lambda conn: plans.open_rendering(conn, claimed, described, skipped=0, lease_s=LEASE_S)
    )
    database.transact(
        lambda conn: plans.write_chunk(
            conn, claimed, Tier.STANDARD, rows, lease_s=LEASE_S, reuse_of=reuse_of
        )
    )
    database.transact(lambda conn: plans.finish_plan(conn, claimed))


def begin_plan(
    database: Database,
    claimed: StepClaim,
    described: Sequence[PlannedPart],
    rows: Sequence[PlannedSegment],
) -> None:
    """Open a plan and write some of its rows; the plan is not ended."""
    database.transact(lambda conn: plans.start_planning(conn, claimed.job_id))
    database.transact(
        lambda conn: plans.open_rendering(conn, claimed, described, skipped=0, lease_s=LEASE_S)
    )
    database.transact(
        lambda conn: plans.write_chunk(conn, claimed, Tier.STANDARD, rows, lease_s=LEASE_S)
    )


def planned_job(database: Database, *, parts: int = 1, per_part: int = 3, **changes: object) -> str:
    job_id = submit(database, **changes)
    plan(database, job_id, parts=parts, per_part=per_part)
    return job_id


def feed(database: Database, limit: int = 100) -> list[SynthMessage]:
    def mark(conn: Connection) -> list[SynthMessage]:
        database.lock_tier(conn, Tier.STANDARD)
        offered = offers.offer(conn, Tier.STANDARD, limit, read_clock(conn))
        picks = [
            Pick(Tier.STANDARD, job.id, segment.index, segment.audio_s)
            for job in offered.jobs
            for segment in job.segments
        ]
        messages = feeding.mark(conn, picks[:limit])
        offers.refresh_heads(conn, [message.job_id for message in messages])
        return messages

    return database.transact(mark)


def claim(database: Database, message: SynthMessage, lease_s: float = LEASE_S) -> Claim | None:
    return database.transact(
        lambda conn: segments.claim(
            conn, message.job_id, message.index, message.dispatch_no, lease_s=lease_s
        )
    )


def must_claim(database: Database, message: SynthMessage, lease_s: float = LEASE_S) -> Claim:
    claimed = claim(database, message, lease_s)
    assert claimed is not None
    return claimed


def must_claim_anew(database: Database, held: Claim) -> Claim:
    """Take a segment from its holder, whose lease has run out; the holder knows nothing of it."""
    where = (segment.c.job_id == held.job_id) & (segment.c.index == held.index)
    database.transact(
        lambda conn: conn.execute(update(segment).where(where).values(lease_until=0.0))
    )
    number = database.read(
        lambda conn: conn.execute(select(segment.c.dispatch_no).where(where)).scalar_one()
    )
    message = SynthMessage(held.job_id, held.index, number, 0, 0.0, Tier(held.tier))
    return must_claim(database, message)


def commit(database: Database, claimed: Claim) -> settling.Committed:
    [committed] = commit_all(database, [claimed])
    return committed


def speak(database: Database, limit: int = 100) -> None:
    """Send, claim and commit what waits, one by one."""
    for message in feed(database, limit):
        commit(database, must_claim(database, message))


def commit_all(database: Database, claims: Sequence[Claim]) -> list[settling.Committed]:
    rendered = [(c.index, c.token, audio_of(c)) for c in claims]
    return database.transact(lambda conn: settling.commit(conn, claims[0].job_id, rendered))


def audio_of(claimed: Claim) -> Audio:
    return Audio(
        f"audio/{claimed.job_id}/{claimed.index}.{claimed.token}",
        offset_bytes=0,
        size_bytes=1_000,
        sha256="00" * 32,
        samples=24_000,
        rate_hz=24_000,
    )


@dataclass(frozen=True)
class Counted:
    """What a part's counters and rows say, to be compared with each other."""

    remaining: int
    open_rows: int


def count(database: Database, job_id: str) -> Counted:
    def look(conn: Connection) -> Counted:
        record = jobs.get(conn, "default", job_id)
        rows = segment_records.page(conn, job_id, limit=1_000_000)
        p = record.progress
        return Counted(
            remaining=p.segments_total - p.segments_done - p.segments_quarantined,
            open_rows=sum(r.state in {"pending", "dispatched", "leased"} for r in rows),
        )

    return database.read(look)
