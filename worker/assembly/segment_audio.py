"""Segment audio as it is stored: 24-bit FLAC in memory, one object per rendering."""

import io

import numpy as np
import soundfile

from worker.engines.base import Samples

# Of the 24 bits the lowest six are zero: a step of 2**-17 lies 12 dB below that of any 16-bit
# deliverable, and what speech has below it is noise that no encoder can shrink (a third of the
# bytes, and of the store's work). FLAC leaves zero bits out. See decision 0006.
SIGNIFICANT_BITS = 18
_COMPRESSION = 1 / 8  # of FLAC's eight levels: higher ones cost CPU and save a few per mille


def encode_segment(samples: Samples, rate_hz: int) -> bytes:
    """Encode float32 mono samples in [-1, 1] as FLAC, 24 bits; louder samples are clipped."""
    sink = io.BytesIO()
    full_scale = 2 ** (SIGNIFICANT_BITS - 1)
    steps = samples * np.float32(full_scale)
    np.rint(steps, out=steps)
    np.clip(steps, -full_scale, full_scale - 1, out=steps)
    left_aligned = steps.astype(np.int32)
    left_aligned <<= 32 - SIGNIFICANT_BITS
    soundfile.write(
        sink,
        left_aligned,
        rate_hz,
        format="FLAC",
        subtype="PCM_24",
        compression_level=_COMPRESSION,
    )
    return sink.getvalue()


def decode_segment(data: bytes) -> tuple[Samples, int]:
    """(float32 mono samples, rate in Hz) of a stored segment. Raises ValueError if damaged."""
    try:
        samples, rate_hz = soundfile.read(io.BytesIO(data), dtype="float32")
    except soundfile.SoundFileError as error:
        raise ValueError(f"damaged segment audio: {error}") from error
    return samples, rate_hz
