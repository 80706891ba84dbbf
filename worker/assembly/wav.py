"""WAV, 16 bits: RIFF up to 4 GiB, RF64 (EBU Tech 3306) beyond, in a head of constant length."""

import struct

from worker.assembly.pcm import to_int16
from worker.engines.base import Samples

_RIFF_LIMIT_BYTES = 0xFFFF_FFFF
_DS64_BYTES = 28


class WavEncoder:
    """PCM, mono. The head reserves a JUNK chunk that becomes ds64 when the file outgrows RIFF."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._data_bytes = 0
        self._begun = False

    def write(self, samples: Samples) -> bytes:
        """See `Encoder`."""
        head = b"" if self._begun else self.head()
        self._begun = True
        data = to_int16(samples).tobytes()
        self._data_bytes += len(data)
        return head + data

    def finish(self) -> bytes:
        """See `Encoder`."""
        if self._begun:
            return b""
        self._begun = True
        return self.head()

    def head(self) -> bytes:
        """80 bytes, whatever the size."""
        riff_bytes = 72 + self._data_bytes
        large = riff_bytes > _RIFF_LIMIT_BYTES
        fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, self._rate_hz, self._rate_hz * 2, 2, 16)
        if large:
            sizes = struct.pack("<QQQI", riff_bytes, self._data_bytes, self._data_bytes // 2, 0)
            reserved = struct.pack("<4sI", b"ds64", _DS64_BYTES) + sizes
        else:
            reserved = struct.pack("<4sI", b"JUNK", _DS64_BYTES) + bytes(_DS64_BYTES)
        return (
            struct.pack(
                "<4sI4s",
                b"RF64" if large else b"RIFF",
                _RIFF_LIMIT_BYTES if large else riff_bytes,
                b"WAVE",
            )
            + reserved
            + fmt
            + struct.pack("<4sI", b"data", _RIFF_LIMIT_BYTES if large else self._data_bytes)
        )
