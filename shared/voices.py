"""What an engine says of itself: voices, languages, limits, licence. Nodes publish it to SQL."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.blends import Share, parse_blend, write_blend

_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


class VoiceInfo(BaseModel):
    """One preset voice of an engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    language: str = Field(description="BCP 47 primary language subtag, e.g. 'en'")
    name: str = ""
    gender: str = ""
    licence: str = ""
    aliases: tuple[str, ...] = Field(default=(), description="other names, such as its number")
    pace: float = Field(
        default=1.0, gt=0, description="how fast it reads, beside the pace of its engine"
    )


class EngineInfo(BaseModel):
    """Everything the farm needs to know of an engine without importing it.

    `slots` is how many utterances the engine holds at once (its largest batch); `max_chars` the
    longest text of one utterance, in characters; `sample_rate_hz` its native output rate. An engine
    that `streams` advances row by row: chunks come out while a row runs, and a freed slot can be
    filled before the next step; any other runs a whole batch in a step. One that
    `pads` takes for every member of a batch as long as for the longest, and wants many in sight to
    choose like ones from. `batch_by` names what must
    be equal in a batch, besides engine parameters. One that `blends` speaks mixtures of its voices
    too (`a:0.6+b:0.4`, see `shared.blends`).
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
    blends: bool = False
    testing: bool = False
    chars_per_audio_s: float = Field(
        default=15.0,
        description="reading speed without pauses and silent ends, used for estimates only",
    )
    ideographs_per_audio_s: float | None = Field(
        default=None, description="the same for Chinese characters, where theirs differs"
    )

    @property
    def default_voice(self) -> str:
        """The voice used when a job names none: the first one listed."""
        return self.voices[0].id

    def speech_s(self, text: str, voice: str = "") -> float:
        """About how many seconds a text takes at speed 1, without pauses.

        `voice` is an id or a mixture; one that the engine does not have reads at its usual pace.
        """
        mixed = self.blend(voice) or ()
        slowness = sum(share / one.pace for one, share in mixed) or 1.0
        if self.ideographs_per_audio_s is None:
            return slowness * len(text) / self.chars_per_audio_s
        ideographs = len(_IDEOGRAPH.findall(text))
        others = len(text) - ideographs
        usual_s = ideographs / self.ideographs_per_audio_s + others / self.chars_per_audio_s
        return slowness * usual_s

    def voice_named(self, name: str) -> VoiceInfo | None:
        """The voice of this id or alias, or a mixture as one voice; None when there is none.

        A mixture has one spelling as its id, however it was written, and the language of the voice
        that weighs most.
        """
        found = self._preset(name)
        if found is not None:
            return found
        mixed = self.blend(name)
        if mixed is None:
            return None
        heaviest, _ = max(mixed, key=lambda one: one[1])
        id_ = write_blend(tuple(Share(voice.id, share) for voice, share in mixed))
        licences = " and ".join(dict.fromkeys(v.licence for v, _ in mixed if v.licence))
        return VoiceInfo(id=id_, language=heaviest.language, licence=licences)

    def blend(self, name: str) -> tuple[tuple[VoiceInfo, float], ...] | None:
        """The voices that a name stands for, with their shares; None when it stands for none."""
        found = self._preset(name)
        if found is not None:
            return ((found, 1.0),)
        shares = parse_blend(name) if self.blends else None
        voices = [self._preset(share.name) for share in shares or ()]
        known = [voice for voice in voices if voice is not None]
        if not shares or len({voice.id for voice in known}) < len(shares):
            return None
        return tuple((v, share.weight) for v, share in zip(known, shares, strict=True))

    def _preset(self, name: str) -> VoiceInfo | None:
        return next((v for v in self.voices if name == v.id or name in v.aliases), None)
