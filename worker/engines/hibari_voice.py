"""What every backend of hibari says of itself and holds itself to. Knows no model."""

from importlib.metadata import version

import hibari

from shared.errors import UtteranceError
from shared.voices import EngineInfo, VoiceInfo
from worker.engines.english.reading import REVISION

MIN_SPEED, MAX_SPEED = 0.5, 2.0
MAX_CHARS = 400  # one pass of the model in nearly all cases; 25 s of audio, 0.15 s of work
MIN_CHARS = 12  # alone, shorter sentences lose their first sound ("I", "Oh!", "Hm.")


def hibari_info(backend: str, *, name: str, slots: int, pads: bool = False) -> EngineInfo:
    """The EngineInfo of a backend.

    The version names the reading rules too: they shape the sound as much as the model does. Only
    the voice that ships in the package is offered; the others would be downloaded.
    """
    licence = "Apache-2.0"
    return EngineInfo(
        name=name,
        version=f"{version('hibari-tts')}+r{REVISION}",
        backend=backend,
        licence=licence,
        sample_rate_hz=hibari.SAMPLE_RATE,
        voices=(
            VoiceInfo(id="heart", language="en", name="Heart", gender="female", licence=licence),
        ),
        languages=("en",),
        slots=slots,
        pads=pads,
        max_chars=MAX_CHARS,
        min_chars=MIN_CHARS,
        chars_per_audio_s=18.2,  # as stitched: silent ends trimmed, pauses apart
    )


def check_speed(speed: float) -> None:
    """Raise UtteranceError outside the speeds the model speaks clearly at."""
    if not MIN_SPEED <= speed <= MAX_SPEED:
        raise UtteranceError(f"speed must lie between {MIN_SPEED} and {MAX_SPEED}")
