"""What a client may ask of the farm in one job. The farm fills in and checks what is left out."""

from pydantic import BaseModel, ConfigDict, Field

from shared.jobs import AudioFormat, NewlineMode, OnError, OnUnspeakable, Pauses
from shared.tiers import Tier


class Chapter(BaseModel):
    """One part of a job that is sent already divided."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    text: str


class JobWebhook(BaseModel):
    """An address that is told of the job; without events, of its end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    events: tuple[str, ...] | None = None


class JobRequest(BaseModel):
    """Exactly one of `text` and `chapters`; None leaves a choice to the farm.

    `split_chapters` asks the farm to find chapter headings in `text`, one audio file each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = None
    chapters: tuple[Chapter, ...] | None = None
    engine: str | None = None
    fallback_engine: str | None = None
    voice: str | None = None
    language: str | None = None
    tier: Tier | None = None
    format: AudioFormat | None = None
    sample_rate_hz: int | None = None
    speed: float | None = None
    seed: int | None = None
    pauses: Pauses | None = None
    newlines: NewlineMode | None = None
    on_unspeakable: OnUnspeakable | None = None
    on_error: OnError | None = None
    split_chapters: bool | None = None
    reuse: bool | None = None
    retention_s: int | None = None
    title: str | None = None
    metadata: dict[str, str] | None = Field(default=None)
    webhook: JobWebhook | None = None

    def to_json(self) -> bytes:
        """Return the request body: UTF-8 JSON without the choices left open."""
        return self.model_dump_json(exclude_none=True).encode()
