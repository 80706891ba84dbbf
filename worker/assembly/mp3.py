"""MP3, constant bit rate, mono, by LAME, with an Info frame of ours for exact length.

The Info frame (the "LAME tag", as described by its author Gabriel Bouvigne's public revision 1)
tells decoders how many samples the encoder put before and after, so that they return exactly
what went in.
"""

import struct

import lameenc
import numpy as np

from worker.assembly.pcm import to_int16
from worker.engines.base import Samples

# Of 0 (slow) to 9. At these rates 7 is as close to the original as 5 is at three quarters of
# them, for two thirds of the CPU: benchmarks/LOG.md, "MP3 quality".
QUALITY = 7
BIT_RATE_KBPS = {
    8_000: 32,
    16_000: 64,
    22_050: 80,
    24_000: 80,
    32_000: 96,
    44_100: 128,
    48_000: 128,
}
ENCODER_DELAY = 576  # samples LAME puts in front; decoders add 529 of their own and drop both

_VERSION_BITS = {1: 0b11, 2: 0b10, 25: 0b00}
_RATES_HZ = {
    1: (44_100, 48_000, 32_000),
    2: (22_050, 24_000, 16_000),
    25: (11_025, 12_000, 8_000),
}
_KBPS = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


class Mp3Encoder:
    """Streams MP3; the head is one Info frame that counts frames, bytes, delay and padding."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._kbps = BIT_RATE_KBPS[rate_hz]
        self._lame = lameenc.Encoder()
        self._lame.silence()
        self._lame.set_channels(1)
        self._lame.set_in_sample_rate(rate_hz)
        self._lame.set_out_sample_rate(rate_hz)
        self._lame.set_bit_rate(self._kbps)
        self._lame.set_quality(QUALITY)
        self._samples = 0
        self._audio_bytes = 0
        self._begun = False

    def write(self, samples: Samples) -> bytes:
        """See `Encoder`."""
        self._samples += len(samples)
        return self._counted(bytes(self._lame.encode(to_int16(samples).tobytes())))

    def finish(self) -> bytes:
        """See `Encoder`."""
        if self._samples == 0:  # LAME cannot flush what never began
            return self.write(np.zeros(1, np.float32)) + self.finish()
        return self._counted(bytes(self._lame.flush()))

    def _counted(self, data: bytes) -> bytes:
        self._audio_bytes += len(data)
        if self._begun:
            return data
        self._begun = True
        return self.head() + data

    def head(self) -> bytes:
        """The Info frame; of one length from the first call to the last."""
        version = next(v for v, rates in _RATES_HZ.items() if self._rate_hz in rates)
        layout = _Layout(version, self._rate_hz, self._kbps)
        frames = layout.frames_in(self._audio_bytes)
        return layout.info_frame(frames, self._audio_bytes, self._samples)


class _Layout:
    """Sizes and header bits of the frames of one stream."""

    def __init__(self, version: int, rate_hz: int, kbps: int) -> None:
        self._kbps = kbps
        self._rate_hz = rate_hz
        self.samples_per_frame = 1_152 if version == 1 else 576
        bit_rates = _KBPS[1 if version == 1 else 2]
        self._header = struct.pack(
            ">I",
            0x7FF << 21
            | _VERSION_BITS[version] << 19
            | 0b01 << 17  # layer III
            | 1 << 16  # no CRC
            | bit_rates.index(kbps) << 12
            | _RATES_HZ[version].index(rate_hz) << 10
            | 0b11 << 6  # mono
            | 1 << 2,  # original
        )
        self._side_info_bytes = 17 if version == 1 else 9

    def frames_in(self, audio_bytes: int) -> int:
        """Frames in so many bytes at a constant rate: padding keeps the mean length exact."""
        bits_per_frame = self.samples_per_frame * self._kbps * 1_000 / self._rate_hz
        return round(audio_bytes * 8 / bits_per_frame)

    def info_frame(self, frames: int, audio_bytes: int, samples: int) -> bytes:
        length = self.samples_per_frame * self._kbps * 125 // self._rate_hz
        padding = max(0, frames * self.samples_per_frame - ENCODER_DELAY - samples)
        tag = (
            self._header
            + bytes(self._side_info_bytes)
            + struct.pack(">4sIII", b"Info", 0b0011, frames, length + audio_bytes)
            + b"LAME4.0  "
            + bytes([0x01, 0])  # tag revision 0, constant bit rate; low-pass not stated
            + bytes(8)  # replay gain: none
            + bytes([0, min(self._kbps, 255)])
            + (ENCODER_DELAY << 12 | min(padding, 4_095)).to_bytes(3, "big")
            + bytes([0, 0, 0, 0])
            + struct.pack(">IH", length + audio_bytes, 0)
        )
        tag += struct.pack(">H", _crc16(tag))
        return tag + bytes(length - len(tag))


def _crc16(data: bytes) -> int:
    """CRC-16 (polynomial 0x8005, reflected, start 0) over the tag up to this field."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc
