"""Quoting a job: everything that a submit checks, a plan, an estimate, and nothing written."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

from api.admissible import admissible
from api.auth import Caller
from api.capacity import check_size, check_tier, demand_of
from api.deps import Deps
from api.submission import read_submission
from api.views.base import utc
from api.views.quote import QuoteView, SkipView
from shared.content import segment_key
from shared.deadlines import job_due_at
from shared.farm_secret import load_farm_secret, tenant_secret
from shared.ledger import nodes, renderings
from shared.ledger.jobs import NewJob
from shared.outlook import Outlook
from shared.planning import Expected, Part, Plan, expected, plan_text
from shared.scheduling.pace import steps_s
from shared.segments import SegmentKind
from shared.voices import EngineInfo

SKIPS_SHOWN = 100


def quote(deps: Deps, caller: Caller, body: bytes) -> QuoteView:
    """Read, check and plan a submission.

    Raises UsageError as a submit does, and TransientError for all but a lack of room: that passes,
    and is told with the rest.
    """
    asked, tenant = read_submission(body), caller.tenant
    check_tier(asked.tier, caller.tiers)
    engines = [record.info for record in deps.read(nodes.engines)]
    new = deps.admission.admit(asked, engines, tenant=tenant)
    check_size(demand_of(new), caller.quota)
    given = [Part(i, title, start, end) for i, (title, start, end) in enumerate(new.chapters)]
    plan = plan_text(new.text, parts=given or None, spec=new.spec)
    info = next(info for info in engines if info.name == new.spec.engine)
    speech_s = partial(info.speech_s, voice=new.spec.voice)
    found = expected(plan, speech_s=speech_s, speed=new.spec.speed)
    reused = _reused(deps, tenant, new, plan)
    outlook = deps.outlooks.now()
    work_s = _work_s(new, plan, info, outlook, reused)
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
        segments_reused=len(reused),
        segments_skipped=found.skipped,
        skips=_skips(plan),
        audio_s=found.audio_s,
        wait_s=wait_s,
        completion_s=None if wait_s is None else wait_s + _own_s(new, plan, found, outlook, work_s),
        admissible=admissible(deps, caller, new),
        due_at=utc(job_due_at(outlook.at, len(new.text), target)),
    )


def _reused(deps: Deps, tenant: str, new: NewJob, plan: Plan) -> list[str]:
    """The pieces whose audio the tenant has already, as text."""
    if not new.spec.reuse:
        return []
    secret = tenant_secret(load_farm_secret(deps.farm.settings), tenant)
    pieces = [piece.text for piece in plan.pieces if piece.kind is SegmentKind.SPEECH]
    keys = [segment_key(secret, new.spec, text) for text in pieces]
    known = deps.read(lambda conn: renderings.known(conn, tenant, keys))
    return [text for text, key in zip(pieces, keys, strict=True) if key in known]


def _own_s(new: NewJob, plan: Plan, found: Expected, outlook: Outlook, work_s: float) -> float:
    """What the job itself takes, once it is its turn: plan, rendering, and its last part's file."""
    assert outlook.rate is not None  # noqa: S101 - asked before
    beside_s = steps_s(len(new.text), found.audio_s / len(plan.parts), new.spec.format)
    return work_s / outlook.rate.audio_s_per_s + beside_s


def _work_s(
    new: NewJob, plan: Plan, info: EngineInfo, outlook: Outlook, reused: Sequence[str]
) -> float:
    """Seconds of audio to be made.

    A character becomes what those of the tier became lately, but for an engine that tells its pace
    by script: the last ones may have been of another script, and last a third as long.
    """

    def said_s(texts: Iterable[str]) -> float:
        if info.ideographs_per_audio_s is None:
            return outlook.tiers[new.spec.tier].audio_per_char_s * sum(map(len, texts))
        return sum(info.speech_s(text, new.spec.voice) for text in texts)

    spoken = [piece.text for piece in plan.pieces if piece.kind is SegmentKind.SPEECH]
    return (said_s(spoken) - said_s(reused)) / new.spec.speed


def _skips(plan: Plan) -> list[SkipView]:
    left_out = (piece for piece in plan.pieces if piece.kind is SegmentKind.SKIP)
    return [
        SkipView(part=piece.part, start=piece.start, end=piece.end, reason=piece.reason)
        for piece in islice(left_out, SKIPS_SHOWN)
    ]
