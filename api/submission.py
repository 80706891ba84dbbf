"""What a client may ask for in one job: the body of `POST /v1/jobs`, read and checked by itself.

Knows neither engines nor the ledger: whether a voice exists is decided at admission. Fields that
the farm does not know are refused, so that a misspelt wish is never silently dropped.
"""

import hashlib
import json
import unicodedata
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from api.reading import read_as
from api.webhook_wish import WebhookWish
from shared.jobs import (
    LEAST_RETENTION_S,
    LEAST_SPEED,
    MAX_SEED,
    MOST_RETENTION_S,
    MOST_SPEED,
    AudioFormat,
    NewlineMode,
    OnError,
    OnUnspeakable,
    Pauses,
)
from shared.tiers import Tier

TITLE_CHARS = 500
METADATA_KEYS = 64

EXAMPLE: dict[str, JsonValue] = {
    "text": "The farm wakes before the sun.\n\nBy noon, the whole book has been read.",
    "voice": "heart",
    "tier": "standard",
    "format": "mp3",
    "title": "An opening",
    "metadata": {"order": "4711"},
}
BOOK_EXAMPLE: dict[str, JsonValue] = {
    "chapters": [
        {"title": "One", "text": "It began with a knock at the door."},
        {"title": "Two", "text": "Nobody had expected the answer."},
    ],
    "tier": "bulk",
    "format": "flac",
    "pauses": {"paragraph_s": 1.0},
}


def _no_controls(text: str) -> str:
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise PydanticCustomError("control_character", "Must not contain control characters")
    return text


Line = Annotated[str, StringConstraints(max_length=TITLE_CHARS), AfterValidator(_no_controls)]
MetadataKey = Annotated[
    str, StringConstraints(min_length=1, max_length=64), AfterValidator(_no_controls)
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class AskedPauses(Pauses):
    """Silence put after a piece, in seconds, by what ends it."""

    model_config = ConfigDict(strict=True)


class Chapter(BaseModel):
    """A part of the job that gets a file of its own. The title is not spoken."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    title: Line = ""
    text: str = Field(description="what is spoken, in Unicode; never empty")


class Submission(BaseModel):
    """A job as asked for. Exactly one of `text` and `chapters` must be given."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, json_schema_extra={"example": EXAMPLE}
    )

    text: str | None = Field(default=None, description="the whole text, in one piece")
    chapters: list[Chapter] | None = Field(
        default=None, description="the text already divided; each chapter becomes one file"
    )
    engine: Name | None = Field(default=None, description="default: the farm's default engine")
    fallback_engine: Name | None = Field(
        default=None, description="speaks what the engine gives up, before it becomes a gap"
    )
    voice: Name | None = Field(default=None, description="default: the engine's first voice")
    language: Name | None = Field(default=None, description="default: the voice's language")
    tier: Annotated[Tier, Field(strict=False)] = Tier.STANDARD
    format: Annotated[AudioFormat, Field(strict=False)] = AudioFormat.MP3
    sample_rate_hz: int | None = Field(
        default=None, description="default: 24,000 for WAV and FLAC, 44,100 for MP3"
    )
    speed: float = Field(
        default=1.0, ge=LEAST_SPEED, le=MOST_SPEED, description="1 is the voice's own pace"
    )
    seed: int = Field(default=0, ge=0, le=MAX_SEED, description="equal seeds give equal audio")
    pauses: AskedPauses = AskedPauses()
    newlines: Annotated[NewlineMode, Field(strict=False)] = NewlineMode.PROSE
    on_unspeakable: Annotated[OnUnspeakable, Field(strict=False)] = Field(
        default=OnUnspeakable.REFUSE,
        description="what to do with text in a script that the engine cannot speak",
    )
    on_error: Annotated[OnError, Field(strict=False)] = Field(
        default=OnError.PARTIAL,
        description="when a piece cannot be spoken: deliver the rest (partial) or stop (fail)",
    )
    split_chapters: bool = Field(
        default=False, description="find chapter headings in `text`, and make a file of each"
    )
    reuse: bool = Field(
        default=True,
        description="false: make everything anew, also what an earlier job has made",
    )
    retention_s: int | None = Field(
        default=None,
        ge=LEAST_RETENTION_S,
        le=MOST_RETENTION_S,
        description="how long files and text are kept once the job has ended; default: the farm's",
    )
    title: Line = ""
    metadata: dict[MetadataKey, str] = Field(
        default_factory=dict, max_length=METADATA_KEYS, description="returned with the job, as is"
    )

    webhook: WebhookWish | None = Field(
        default=None, description="told of this job, beside the webhooks that are told of all"
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.text is None) == (self.chapters is None):
            raise PydanticCustomError(
                "text_or_chapters", "Exactly one of text and chapters must be given"
            )
        if self.chapters is not None and self.split_chapters:
            raise PydanticCustomError(
                "split_given_chapters", "split_chapters goes with text, not with chapters"
            )
        return self

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what is asked for, whatever the order of members and the white space.

        Members that say the default count as left out, so a default may be added later.
        """
        asked = self.model_dump(mode="json", exclude_defaults=True)
        canonical = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


def read_submission(body: bytes) -> Submission:
    """The submission in a request body. Raises UsageError; nothing of the text is repeated."""
    return read_as(Submission, body)
