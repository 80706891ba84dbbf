"""Voices and engines as a client sees them."""

from collections.abc import Sequence
from typing import Self

from pydantic import Field

from api.views.base import View
from shared.ledger.nodes import EngineRecord
from shared.voices import EngineInfo


class VoiceView(View):
    """A preset voice."""

    id: str
    engine: str
    language: str
    name: str
    gender: str
    licence: str
    aliases: list[str] = Field(description="other names that jobs may use")
    default: bool = Field(description="used when a job names its engine but no voice")


class VoiceList(View):
    """Every voice that jobs may name."""

    voices: list[VoiceView]

    @classmethod
    def of(cls, engines: Sequence[EngineRecord]) -> Self:
        """The voices of these engines, engine by engine."""
        return cls(
            voices=[
                VoiceView(
                    id=voice.id,
                    engine=engine.info.name,
                    language=voice.language,
                    name=voice.name,
                    gender=voice.gender,
                    licence=voice.licence,
                    aliases=list(voice.aliases),
                    default=voice.id == engine.info.default_voice,
                )
                for engine in engines
                for voice in engine.info.voices
            ]
        )


class EngineView(EngineInfo):
    """An engine, and whether it runs now."""

    live: bool = Field(description="at least one node runs it now")
    nodes: int

    @classmethod
    def of(cls, record: EngineRecord) -> Self:
        """The view of a published engine."""
        return cls(**dict(record.info), live=record.nodes > 0, nodes=record.nodes)


class EngineList(View):
    """Every engine that jobs may name."""

    engines: list[EngineView]
