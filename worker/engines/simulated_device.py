"""What the simulated engines have in common: what such a device says of itself, and its sound.

Knows no time: how long the device works is each engine's own.
"""

import numpy as np

from shared.voices import EngineInfo, VoiceInfo
from worker.engines.base import Samples

RATE_HZ = 24_000
MAX_CHARS = 400
CHARS_PER_S = 15
_TONE_HZ = 200


def device_info(name: str, *, slots: int, streams: bool = False) -> EngineInfo:
    """What a device that only sleeps says of itself."""
    return EngineInfo(
        name=name,
        version="1",
        backend="sleep",
        licence="Apache-2.0",
        sample_rate_hz=RATE_HZ,
        voices=(VoiceInfo(id="tone", language="en", name="Tone", licence="Apache-2.0"),),
        languages=("en", "zh"),
        slots=slots,
        max_chars=MAX_CHARS,
        streams=streams,
        testing=True,
        chars_per_audio_s=CHARS_PER_S,
    )


def tone(length_s: float) -> Samples:
    """A quiet tone of so many seconds, mono at `RATE_HZ`."""
    phase = 2 * np.pi * _TONE_HZ / RATE_HZ * np.arange(int(length_s * RATE_HZ))
    samples: Samples = (0.1 * np.sin(phase)).astype(np.float32)
    return samples
