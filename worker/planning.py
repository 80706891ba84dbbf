"""The plan step: split a job's text into segments and write them, the first window at once."""

from collections.abc import Iterator, Sequence
from itertools import islice

from shared.content import segment_key
from shared.crashpoints import crash_point
from shared.deadlines import segment_due_at
from shared.farm import Farm
from shared.farm_secret import load_farm_secret, tenant_secret
from shared.jobs import JobSpec, JobState
from shared.ledger import jobs, plans, steps
from shared.ledger.plans import PlannedPart, PlannedSegment, Written
from shared.ledger.steps import StepClaim
from shared.planning import Part, Plan, plan_text
from shared.segments import SegmentKind
from shared.settings import TierSettings

CHARS_PER_S = (
    40_000  # planning cannot show progress; the slowest text measured ran 185,000 a second
)
CHUNK = 1_000  # rows a transaction: enough to be fast, few enough to block nobody


def run_plan(farm: Farm, claimed: StepClaim) -> None:
    """Plan a job. Resumes behind the last chunk that an earlier holder of the step wrote."""
    database, lease_s = farm.database, farm.settings.lease_s
    tenant, spec = database.read(lambda conn: jobs.read_spec(conn, claimed.job_id))
    text, chapters = database.read(lambda conn: jobs.read_text(conn, claimed.job_id))
    database.transact(
        lambda conn: steps.renew(conn, claimed, lease_s=lease_s + len(text) / CHARS_PER_S)
    )
    created_at, due_at = database.transact(lambda conn: plans.start_planning(conn, claimed.job_id))
    given = [Part(i, title, start, end) for i, (title, start, end) in enumerate(chapters)]
    plan = plan_text(text, parts=given or None, spec=spec)
    parts = _count_parts(plan)
    if not any(part.speech_segments for part in parts):
        database.transact(
            lambda conn: jobs.end(
                conn,
                claimed.job_id,
                JobState.FAILED,
                code="nothing-to-speak",
                message="without what the engine cannot speak, no text remains",
            )
        )
        return
    skipped = sum(piece.kind is SegmentKind.SKIP for piece in plan.pieces)
    if not database.transact(
        lambda conn: plans.open_rendering(conn, claimed, parts, skipped=skipped, lease_s=lease_s)
    ):
        return
    crash_point("plan.opened")
    written = database.read(lambda conn: plans.written(conn, claimed.job_id))
    rows = islice(
        _rows(
            plan,
            spec,
            secret=tenant_secret(load_farm_secret(farm.settings), tenant),
            created_at=created_at,
            due_at=due_at,
            target=farm.settings.tiers[spec.tier],
        ),
        written,
        None,
    )
    first = True
    for chunk in plans.chunks(rows, CHUNK):
        done = _write(farm, claimed, spec, chunk, reuse_of=tenant if spec.reuse else None)
        if done is None:
            return
        crash_point("plan.chunk_written")
        if done.step_ids:
            farm.dispatcher.send_steps()
        if first:
            farm.dispatcher.fill(spec.tier)
            first = False
    step_ids = database.transact(lambda conn: plans.finish_plan(conn, claimed))
    crash_point("plan.finished")
    farm.dispatcher.fill(spec.tier)
    if step_ids:
        farm.dispatcher.send_steps()


def _write(
    farm: Farm,
    claimed: StepClaim,
    spec: JobSpec,
    chunk: Sequence[PlannedSegment],
    *,
    reuse_of: str | None,
) -> Written | None:
    return farm.database.transact(
        lambda conn: plans.write_chunk(
            conn, claimed, spec.tier, chunk, lease_s=farm.settings.lease_s, reuse_of=reuse_of
        )
    )


def _count_parts(plan: Plan) -> list[PlannedPart]:
    counts = {part.index: [0, 0] for part in plan.parts}
    for piece in plan.pieces:
        if piece.kind is SegmentKind.SPEECH:
            counts[piece.part][0] += 1
            counts[piece.part][1] += len(piece.text)
    return [
        PlannedPart(part.index, part.title, part.start, part.end, *counts[part.index])
        for part in plan.parts
    ]


def _rows(
    plan: Plan,
    spec: JobSpec,
    *,
    secret: bytes,
    created_at: float,
    due_at: float,
    target: TierSettings,
) -> Iterator[PlannedSegment]:
    total_chars = sum(len(piece.text) for piece in plan.pieces)
    chars_before = 0
    for index, piece in enumerate(plan.pieces):
        fraction = chars_before / total_chars
        chars_before += len(piece.text)
        yield PlannedSegment(
            index=index,
            part=piece.part,
            kind=piece.kind,
            start=piece.start,
            end=piece.end,
            text=piece.text,
            pause_after_s=piece.pause_after_s,
            reason=piece.reason,
            due_at=segment_due_at(created_at, due_at, index, fraction, target),
            content_key=(
                segment_key(secret, spec, piece.text) if piece.kind is SegmentKind.SPEECH else ""
            ),
        )
