"""A job as its tenant sees it: frozen settings, states, and the moves between states."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from shared.tiers import Tier


class JobState(StrEnum):
    """Where a job stands. `paused` is a flag beside what is not all spoken, not a state."""

    ACCEPTED = "accepted"
    PLANNING = "planning"
    RENDERING = "rendering"
    ASSEMBLING = "assembling"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def ended(self) -> bool:
        """True when no more work will be done for the job unless somebody asks for a retry."""
        return self in ENDED


ENDED = frozenset(
    {
        JobState.COMPLETED,
        JobState.PARTIAL,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.EXPIRED,
    }
)
ALIVE = frozenset(JobState) - ENDED

_STOPS = frozenset({JobState.FAILED, JobState.CANCELLED})
JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.ACCEPTED: frozenset({JobState.PLANNING}) | _STOPS,
    JobState.PLANNING: frozenset({JobState.RENDERING}) | _STOPS,
    JobState.RENDERING: frozenset({JobState.ASSEMBLING}) | _STOPS,
    JobState.ASSEMBLING: frozenset(
        {JobState.COMPLETED, JobState.PARTIAL, JobState.RENDERING}  # audio that was lost
    )
    | _STOPS,
    JobState.COMPLETED: frozenset({JobState.EXPIRED}),
    JobState.PARTIAL: frozenset({JobState.RENDERING, JobState.EXPIRED}),
    JobState.FAILED: frozenset(
        {JobState.ACCEPTED, JobState.RENDERING, JobState.ASSEMBLING, JobState.EXPIRED}
    ),
    JobState.CANCELLED: frozenset({JobState.EXPIRED}),
    JobState.EXPIRED: frozenset(),
}


HOUR_S, DAY_S = 3_600, 86_400
LEAST_RETENTION_S, MOST_RETENTION_S = HOUR_S, 31 * DAY_S
DEFAULT_RETENTION_S = 7 * DAY_S
LEAST_SPEED, MOST_SPEED = 0.5, 2.0
MAX_SEED = 2**63 - 1


class AudioFormat(StrEnum):
    """Container and codec of a deliverable."""

    WAV = "wav"
    FLAC = "flac"
    MP3 = "mp3"


DEFAULT_SAMPLE_RATE_HZ: dict[AudioFormat, int] = {
    AudioFormat.WAV: 24_000,
    AudioFormat.FLAC: 24_000,
    AudioFormat.MP3: 44_100,
}
SAMPLE_RATES_HZ = (8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


class NewlineMode(StrEnum):
    """What a single newline means. A blank line always ends a paragraph."""

    PROSE = "prose"  # hard-wrapped text: a newline is a space
    LINES = "lines"  # verse, lists: every line stands alone


class OnUnspeakable(StrEnum):
    """What to do with text in a language the engine cannot speak."""

    REFUSE = "refuse"
    SKIP = "skip"


class OnError(StrEnum):
    """How a job ends when a piece of it cannot be spoken."""

    PARTIAL = "partial"  # all the rest is delivered, the gap is named
    FAIL = "fail"  # the job ends as soon as a piece is given up


class Pauses(BaseModel):
    """Silence put after a piece, in seconds, by what ends it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clause_s: float = Field(default=0.12, ge=0, le=10, description="a long sentence cut in two")
    sentence_s: float = Field(default=0.30, ge=0, le=10)
    paragraph_s: float = Field(default=0.70, ge=0, le=30)
    chapter_s: float = Field(default=1.50, ge=0, le=60, description="before a chapter's end mark")


class Fallback(BaseModel):
    """The engine that speaks what the job's own engine gave up, resolved at submit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    version: str
    backend: str
    voice: str


class JobSpec(BaseModel):
    """A job's settings, resolved and frozen at submit; nothing later re-reads a default.

    `engine_version`, `engine_max_chars` and `engine_rate_hz` are copied from the engine's
    published EngineInfo so that planning and assembly need no engine at hand. `reuse` lets audio
    that the tenant has already stand for equal text; without it everything is made anew.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    engine_version: str
    engine_backend: str
    engine_rate_hz: int
    engine_max_chars: int
    engine_min_chars: int
    languages: tuple[str, ...]
    voice: str
    language: str
    tier: Tier
    format: AudioFormat
    sample_rate_hz: int
    speed: float
    seed: int
    pauses: Pauses
    newlines: NewlineMode
    on_unspeakable: OnUnspeakable
    split_chapters: bool
    fallback: Fallback | None = None
    reuse: bool = True
    on_error: OnError = OnError.PARTIAL
