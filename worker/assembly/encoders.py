"""Streaming encoders: samples in, bytes out, and the file's first bytes patched at the end.

WAV, FLAC and MP3 all carry facts in their head that are known only at the end (sizes, sample
counts, checksums). An encoder emits a head of the right length first and gives the true one in
`head()` after `finish()`; whoever stores the stream keeps those bytes back until then.
"""

from typing import Protocol

from shared.jobs import AudioFormat
from worker.assembly.flac import FlacEncoder
from worker.assembly.mp3 import Mp3Encoder
from worker.assembly.wav import WavEncoder
from worker.engines.base import Samples

CONTENT_TYPES = {
    AudioFormat.WAV: "audio/wav",
    AudioFormat.FLAC: "audio/flac",
    AudioFormat.MP3: "audio/mpeg",
}


class Encoder(Protocol):
    """Encodes float32 mono samples in [-1, 1]; louder ones are clipped."""

    def write(self, samples: Samples) -> bytes:
        """Encode a block; returns what is ready, perhaps nothing."""
        ...

    def finish(self) -> bytes:
        """End the stream; returns the rest."""
        ...

    def head(self) -> bytes:
        """The true first bytes of the file, to replace as many emitted ones. After `finish`."""
        ...


def encoder_for(audio_format: AudioFormat, rate_hz: int) -> Encoder:
    """A fresh encoder for one file."""
    match audio_format:
        case AudioFormat.WAV:
            return WavEncoder(rate_hz)
        case AudioFormat.FLAC:
            return FlacEncoder(rate_hz)
        case AudioFormat.MP3:
            return Mp3Encoder(rate_hz)
