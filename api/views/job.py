"""A job as its tenant sees it, and a page of jobs."""

from datetime import datetime
from typing import Literal, Self

from pydantic import ConfigDict, Field, JsonValue

from api.views.base import View, utc, utc_or_none
from shared.jobs import AudioFormat, JobState
from shared.ledger.jobs import JobRecord
from shared.tiers import Tier
from shared.webhooks import EventType

JOB_EXAMPLE: dict[str, JsonValue] = {
    "id": "01KB9Z7Q4C4F6W8Y2N3M5P7R9T",
    "object": "job",
    "state": "rendering",
    "paused": False,
    "tier": "standard",
    "engine": "hibari",
    "voice": "heart",
    "language": "en",
    "format": "mp3",
    "sample_rate_hz": 44100,
    "speed": 1.0,
    "seed": 0,
    "title": "An opening",
    "metadata": {"order": "4711"},
    "characters": 70,
    "created_at": "2026-11-30T09:00:00.125000Z",
    "started_at": "2026-11-30T09:00:01.250000Z",
    "ended_at": None,
    "due_at": "2026-11-30T09:02:00.125000Z",
    "retention_s": 604800,
    "expires_at": None,
    "reuse": {"segments": 1, "of": 2, "parts": 0},
    "progress": {
        "segments_total": 2,
        "segments_done": 1,
        "segments_quarantined": 0,
        "segments_skipped": 0,
        "fraction": 0.47,
        "audio_s": 2.1,
        "eta_s": 1.4,
        "queue_position": 3,
        "parts_total": 1,
        "parts_done": 0,
    },
    "error": None,
    "webhook": None,
    "links": {
        "self": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T",
        "events": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/events",
        "segments": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/segments",
        "deliverables": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/deliverables",
        "pause": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/pause",
        "resume": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/resume",
        "cancel": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/cancel",
        "retry": "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/retry",
    },
}


class ProgressView(View):
    """How far a job is. Totals are 0 until it is planned."""

    segments_total: int = Field(description="pieces to be spoken")
    segments_done: int
    segments_quarantined: int = Field(description="pieces given up; each is a named gap")
    segments_skipped: int = Field(description="pieces left out by the job's own choice")
    fraction: float = Field(description="0 to 1, by characters")
    audio_s: float = Field(description="audio made so far")
    eta_s: float | None = Field(description="time to go at its rate of late; null: not known")
    queue_position: int | None = Field(
        description=(
            "jobs of this tier that wait and are due before it, 1,000 at most; null: it does not "
            "wait for the engines"
        )
    )
    parts_total: int
    parts_done: int


class ReuseView(View):
    """How much of a job was there already, from earlier jobs of its tenant."""

    segments: int = Field(description="pieces whose audio was there")
    of: int = Field(description="pieces to be spoken")
    parts: int = Field(description="parts whose file was there")


class ErrorView(View):
    """Why a job ended without its files."""

    code: str
    message: str


class JobWebhookView(View):
    """The webhook that a job itself named."""

    id: str
    events: list[EventType]


class LinksView(View):
    """Paths of everything that belongs to a job."""

    self: str
    events: str
    segments: str
    deliverables: str
    pause: str
    resume: str
    cancel: str
    retry: str


class JobView(View):
    """A job as its tenant sees it."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"example": JOB_EXAMPLE})

    id: str
    object: Literal["job"] = "job"
    state: JobState
    paused: bool
    tier: Tier
    engine: str
    fallback_engine: str | None = Field(
        default=None, description="speaks what the engine gives up, before it becomes a gap"
    )
    voice: str
    language: str
    format: AudioFormat
    sample_rate_hz: int
    speed: float
    seed: int
    title: str | None
    metadata: dict[str, str]
    characters: int
    created_at: datetime
    started_at: datetime | None = Field(description="when the first piece's audio was in")
    ended_at: datetime | None
    due_at: datetime | None = Field(description="the tier's completion target for this job")
    retention_s: int = Field(description="how long files and text are kept once it has ended")
    expires_at: datetime | None = Field(
        description="when its files and its text go, or went; null: it has not ended"
    )
    reuse: ReuseView
    progress: ProgressView
    error: ErrorView | None
    webhook: JobWebhookView | None = Field(
        default=None, description="the one that the job named; see `/v1/webhooks`"
    )
    links: LinksView

    @classmethod
    def of(cls, record: JobRecord) -> Self:
        """The view of a stored job."""
        spec = record.spec
        path = f"/v1/jobs/{record.id}"
        error = None
        if record.error_code is not None:
            error = ErrorView(code=record.error_code, message=record.error_message or "")
        return cls(
            id=record.id,
            state=record.state,
            paused=record.paused,
            tier=spec.tier,
            engine=spec.engine,
            fallback_engine=None if spec.fallback is None else spec.fallback.engine,
            voice=spec.voice,
            language=spec.language,
            format=spec.format,
            sample_rate_hz=spec.sample_rate_hz,
            speed=spec.speed,
            seed=spec.seed,
            title=record.title or None,
            metadata=dict(record.metadata),
            characters=record.characters,
            created_at=utc(record.created_at),
            started_at=utc_or_none(record.started_at),
            ended_at=utc_or_none(record.ended_at),
            due_at=utc(record.due_at),
            retention_s=round(record.retention_s),
            expires_at=utc_or_none(record.expires_at),
            reuse=ReuseView(
                segments=record.segments_reused,
                of=record.progress.segments_total,
                parts=record.parts_reused,
            ),
            progress=ProgressView.model_validate(record.progress, from_attributes=True),
            error=error,
            webhook=_webhook(record),
            links=LinksView(
                self=path,
                events=f"{path}/events",
                segments=f"{path}/segments",
                deliverables=f"{path}/deliverables",
                pause=f"{path}/pause",
                resume=f"{path}/resume",
                cancel=f"{path}/cancel",
                retry=f"{path}/retry",
            ),
        )


def _webhook(record: JobRecord) -> JobWebhookView | None:
    if record.webhook_id is None:
        return None
    return JobWebhookView(
        id=record.webhook_id, events=[EventType(word) for word in record.webhook_events]
    )


class JobPage(View):
    """Jobs, newest first. Pass `next_cursor` as `cursor` for the following page."""

    object: Literal["list"] = "list"
    data: list[JobView]
    next_cursor: str | None
