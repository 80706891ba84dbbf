"""Texts for measurements, split by the farm's own planner as for its default engine."""

from pathlib import Path

from shared.jobs import AudioFormat, JobSpec, NewlineMode, OnUnspeakable, Pauses
from shared.planning import plan_text
from shared.tiers import Tier
from worker.engines.registry import build

FOUR_CHAPTERS = Path(__file__).parent / "texts" / "journey-4-chapters.txt"
TEN_CHAPTERS = Path(__file__).parent / "texts" / "journey-10-chapters.txt"
SAMPLE = Path(__file__).parents[1] / "samples" / "english.txt"


def sentences(text: str, *, engine: str = "hibari") -> list[str]:
    """What the engine would be asked to say, in order."""
    return [
        piece.text
        for piece in plan_text(text, parts=None, spec=spec_for(engine)).pieces
        if piece.text
    ]


def spec_for(engine: str) -> JobSpec:
    """The settings that the farm would freeze for a plain job with this engine."""
    info = build(engine, {}).info
    return JobSpec(
        engine=info.name,
        engine_version=info.version,
        engine_backend=info.backend,
        engine_rate_hz=info.sample_rate_hz,
        engine_max_chars=info.max_chars,
        engine_min_chars=info.min_chars,
        languages=info.languages,
        voice=info.default_voice,
        language=info.languages[0],
        tier=Tier.STANDARD,
        format=AudioFormat.FLAC,
        sample_rate_hz=info.sample_rate_hz,
        speed=1.0,
        seed=0,
        pauses=Pauses(),
        newlines=NewlineMode.PROSE,
        on_unspeakable=OnUnspeakable.REFUSE,
        split_chapters=False,
    )
