"""What a job would be, before it is one."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from api.views.base import View
from shared.tiers import Tier

QUOTE_EXAMPLE: dict[str, JsonValue] = {
    "object": "quote",
    "tier": "standard",
    "engine": "hibari",
    "voice": "heart",
    "language": "en",
    "characters": 70,
    "characters_spoken": 68,
    "parts": 1,
    "segments": 2,
    "segments_reused": 0,
    "segments_skipped": 0,
    "skips": [],
    "audio_s": 6.0,
    "wait_s": 12.5,
    "completion_s": 12.9,
    "admissible": {"ok": True, "code": None, "detail": None, "retry_after_s": None},
    "due_at": "2026-11-30T09:02:00.125000Z",
}


class SkipView(View):
    """A stretch of the text that would be left out. Offsets are characters of the whole text."""

    part: int
    start: int
    end: int
    reason: str


class AdmissibleView(View):
    """Whether a submit would be accepted now. What no waiting helps is refused in a quote too."""

    ok: bool
    code: str | None = Field(
        default=None,
        description="what a submit would be refused with: `farm-full`, `over-quota`, "
        "`webhook-disabled`",
    )
    detail: str | None = None
    retry_after_s: int | None = Field(
        default=None, description="when to try again; null: it is up to its tenant"
    )


class QuoteView(View):
    """An estimate. Nothing is reserved by it."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"example": QUOTE_EXAMPLE})

    object: Literal["quote"] = "quote"
    tier: Tier
    engine: str
    voice: str
    language: str
    characters: int
    characters_spoken: int = Field(description="as the engine gets them: skips and blanks left out")
    parts: int
    segments: int
    segments_reused: int = Field(description="of these, those whose audio is there now")
    segments_skipped: int
    skips: list[SkipView] = Field(description="the first 100")
    audio_s: float = Field(description="expected length of all files together, pauses included")
    wait_s: float | None = Field(
        description="expected time until the engines come to it; null: no rate is known"
    )
    completion_s: float | None = Field(
        description="expected time until its files are there; null: no rate is known"
    )
    admissible: AdmissibleView
    due_at: datetime = Field(description="the tier's completion target, were it submitted now")
