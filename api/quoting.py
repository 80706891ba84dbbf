"""Quoting a job: everything that a submit checks, a plan, an estimate, and nothing written."""

from itertools import islice

from api.deps import Deps
from api.submission import read_submission
from api.views.base import utc
from api.views.quote import QuoteView, SkipView
from shared.deadlines import job_due_at
from shared.ledger import nodes
from shared.ledger.jobs import NewJob
from shared.outlook import Outlook
from shared.planning import Expected, Part, Plan, expected, plan_text
from shared.scheduling.pace import assembly_s
from shared.segments import SegmentKind

SKIPS_SHOWN = 100


def quote(deps: Deps, tenant: str, body: bytes) -> QuoteView:
    """Read, check and plan a submission. Raises UsageError and TransientError as a submit does."""
    engines = [record.info for record in deps.read(nodes.engines)]
    new = deps.admission.admit(read_submission(body), engines, tenant=tenant)
    given = [Part(i, title, start, end) for i, (title, start, end) in enumerate(new.chapters)]
    plan = plan_text(new.text, parts=given or None, spec=new.spec)
    info = next(info for info in engines if info.name == new.spec.engine)
    found = expected(plan, chars_per_audio_s=info.chars_per_audio_s, speed=new.spec.speed)
    outlook = deps.outlooks.now()
    wait_s = outlook.tiers[new.spec.tier].wait_s if outlook.rate is not None else None
    target = deps.admission.settings.tiers[new.spec.tier]
    return QuoteView(
        tier=new.spec.tier,
        engine=new.spec.engine,
        voice=new.spec.voice,
        language=new.spec.language,
        characters=len(new.text),
        characters_spoken=found.chars,
        parts=len(plan.parts),
        segments=found.segments,
        segments_skipped=found.skipped,
        skips=_skips(plan),
        audio_s=found.audio_s,
        wait_s=wait_s,
        completion_s=None if wait_s is None else wait_s + _own_s(new, plan, found, outlook),
        due_at=utc(job_due_at(outlook.at, len(new.text), target)),
    )


def _own_s(new: NewJob, plan: Plan, found: Expected, outlook: Outlook) -> float:
    """What the job itself takes, once it is its turn: its rendering, and its last part's file."""
    assert outlook.rate is not None  # noqa: S101 - asked before
    work_s = found.chars * outlook.tiers[new.spec.tier].audio_per_char_s / new.spec.speed
    last_s = assembly_s(found.audio_s / len(plan.parts), new.spec.format, ())
    return work_s / outlook.rate.audio_s_per_s + last_s


def _skips(plan: Plan) -> list[SkipView]:
    left_out = (piece for piece in plan.pieces if piece.kind is SegmentKind.SKIP)
    return [
        SkipView(part=piece.part, start=piece.start, end=piece.end, reason=piece.reason)
        for piece in islice(left_out, SKIPS_SHOWN)
    ]
