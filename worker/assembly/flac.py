"""FLAC, 16 bits, by libsndfile writing into a file that exists only as its first bytes."""

import io

import soundfile

from worker.assembly.pcm import to_int16
from worker.engines.base import Samples

_HEAD_BYTES = 8_192  # STREAMINFO lies in the first 42; the encoder's seek table may follow


class FlacEncoder:
    """Streams FLAC; sample count and MD5 are patched into the head by the library at the end."""

    def __init__(self, rate_hz: int) -> None:
        self._window = _HeadWindow()
        self._file = soundfile.SoundFile(
            self._window, "w", rate_hz, 1, subtype="PCM_16", format="FLAC"
        )

    def write(self, samples: Samples) -> bytes:
        """See `Encoder`."""
        if len(samples):
            self._file.write(to_int16(samples))
        return self._window.taken()

    def finish(self) -> bytes:
        """See `Encoder`."""
        self._file.close()
        return self._window.taken()

    def head(self) -> bytes:
        """The first bytes as the library left them."""
        return bytes(self._window.head)


class _HeadWindow(io.RawIOBase):
    """A seekable sink that remembers its head and hands the rest on.

    Raises OSError on a write that is neither at the end nor wholly inside the head.
    """

    def __init__(self) -> None:
        self.head = bytearray()
        self._ready = bytearray()
        self._position = 0
        self._length = 0

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = base + offset
        return self._position

    def write(self, data: object) -> int:
        view = bytes(data)  # type: ignore[call-overload]
        if self._position == self._length:
            self._ready += view
            if len(self.head) < _HEAD_BYTES:
                self.head += view[: _HEAD_BYTES - len(self.head)]
            self._length += len(view)
        elif self._position + len(view) <= len(self.head):
            self.head[self._position : self._position + len(view)] = view
        else:
            raise OSError("the encoder rewrote bytes beyond the head")
        self._position += len(view)
        return len(view)

    def taken(self) -> bytes:
        """What was appended since the last call."""
        ready = bytes(self._ready)
        self._ready.clear()
        return ready
