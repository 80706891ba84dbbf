"""What an engine says of itself: voices, languages, limits, licence. Nodes publish it to SQL."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class VoiceInfo(BaseModel):
    """One preset voice of an engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    language: str = Field(description="BCP 47 primary language subtag, e.g. 'en'")
    name: str = ""
    gender: str = ""
    licence: str = ""


class EngineInfo(BaseModel):
    """Everything the farm needs to know of an engine without importing it.

    `slots` is how many utterances the engine holds at once (its largest batch); `max_chars` the
    longest text of one utterance, in characters; `sample_rate_hz` its native output rate. An engine
    that `streams` advances row by row: chunks come out while a row runs, and a freed slot can be
    filled before the next step; any other runs a whole batch in a step. One that
    `pads` takes for every member of a batch as long as for the longest, and wants many in sight to
    choose like ones from. `batch_by` names what must
    be equal in a batch, besides engine parameters.
    `testing` engines are refused at submit unless the operator allows them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    backend: str
    licence: str
    sample_rate_hz: int
    voices: tuple[VoiceInfo, ...]
    languages: tuple[str, ...]
    slots: int
    max_chars: int
    min_chars: int = 1
    streams: bool = False
    pads: bool = False
    batch_by: tuple[Literal["voice", "language", "speed"], ...] = ()
    testing: bool = False
    chars_per_audio_s: float = Field(
        default=15.0,
        description="reading speed without pauses and silent ends, used for estimates only",
    )

    @property
    def default_voice(self) -> str:
        """The voice used when a job names none: the first one listed."""
        return self.voices[0].id
