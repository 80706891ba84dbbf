"""Small verbs for ledger tests: bring a job to where the test begins."""

from dataclasses import dataclass

from sqlalchemy import Connection

from shared.ledger import feeding, jobs, offers, plans, segment_records, segments, steps
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.ledger.plans import PlannedPart, PlannedSegment
from shared.ledger.segments import Audio, Claim
from shared.ledger.steps import StepClaim
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
    database: Database, job_id: str, kind: StepKind, lease_s: float = LEASE_S
) -> StepClaim:
    """Dispatch what waits and lease the job's one step of this kind."""
    messages = database.transact(lambda conn: steps.dispatch(conn, window=100))
    [message] = [m for m in messages if m.kind == kind and m.job_id == job_id]
    claimed = database.transact(
        lambda conn: steps.claim(conn, message.step_id, message.dispatch_no, lease_s=lease_s)
    )
    assert claimed is not None
    return claimed


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


def plan(database: Database, job_id: str, *, parts: int = 1, per_part: int = 3) -> None:
    claimed = claim_step(database, job_id, StepKind.PLAN)
    described, rows = planned_rows(parts, per_part)
    database.transact(lambda conn: plans.start_planning(conn, job_id))
    database.transact(
        lambda conn: plans.open_rendering(conn, claimed, described, skipped=0, lease_s=LEASE_S)
    )
    database.transact(
        lambda conn: plans.write_chunk(conn, claimed, Tier.STANDARD, rows, lease_s=LEASE_S)
    )
    database.transact(lambda conn: plans.finish_plan(conn, claimed))


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
        return feeding.mark(conn, picks[:limit])

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


def commit(database: Database, claimed: Claim) -> segments.Committed:
    audio = Audio(f"audio/{claimed.index}.{claimed.token}", "00" * 32, 24_000, 24_000)
    return database.transact(
        lambda conn: segments.commit(conn, claimed.job_id, claimed.index, claimed.token, audio)
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
