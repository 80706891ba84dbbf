"""What the farm answers, as typed values. Fields this client does not know are ignored."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from shared.jobs import JobState


class Reply(BaseModel):
    """A frozen view of a JSON answer, open to fields of newer farms."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class JobProgress(Reply):
    """How far a job is: counts of segments and parts, seconds of audio made, seconds to go."""

    segments_total: int = 0
    segments_done: int = 0
    segments_quarantined: int = 0
    segments_skipped: int = 0
    fraction: float = 0.0
    audio_s: float = 0.0
    eta_s: float | None = None
    queue_position: int | None = None
    parts_total: int = 0
    parts_done: int = 0


class JobReuse(Reply):
    """How many of a job's segments and parts were there already, from earlier jobs."""

    segments: int = 0
    of: int = 0
    parts: int = 0


class JobError(Reply):
    """Why a job failed."""

    code: str
    message: str


class Job(Reply):
    """A job as its owner sees it."""

    id: str
    state: JobState
    paused: bool = False
    tier: str
    engine: str
    voice: str
    language: str
    format: str
    sample_rate_hz: int
    speed: float
    seed: int
    title: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    characters: int
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    reuse: JobReuse = JobReuse()
    progress: JobProgress = JobProgress()
    error: JobError | None = None


class JobPage(Reply):
    """One page of a listing; `next_cursor` asks for the following one."""

    data: tuple[Job, ...]
    next_cursor: str | None = None


class FileKind(StrEnum):
    """What a deliverable is."""

    AUDIO = "audio"
    MANIFEST = "manifest"


class Deliverable(Reply):
    """A file of a finished job. `url` works without credentials until `url_expires_at`."""

    name: str
    kind: str
    part: int | None = None
    title: str | None = None
    format: str | None = None
    content_type: str
    bytes: int
    samples: int | None = None
    sample_rate_hz: int | None = None
    duration_s: float | None = None
    sha256: str
    url: str
    url_expires_at: datetime | None = None


class DeliverableList(Reply):
    """All files of a job, in playing order."""

    job_id: str
    files: tuple[Deliverable, ...]


class Voice(Reply):
    """A preset voice that a farm offers."""

    id: str
    engine: str
    language: str
    name: str = ""
    gender: str = ""
    licence: str = ""
    aliases: tuple[str, ...] = ()
    default: bool = False


class VoiceList(Reply):
    """All voices of a farm."""

    voices: tuple[Voice, ...]
