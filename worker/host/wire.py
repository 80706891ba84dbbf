"""Frames on the socket between host and link: a JSON header and a payload of raw bytes.

Knows nothing of what they mean. A frame is two big-endian 32-bit lengths (header, payload), then
the header as a UTF-8 JSON object, then the payload. Both lengths are bounded, so that a peer who
sends nonsense costs its own connection and nothing else.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from shared.errors import UsageError

MAX_HEADER_BYTES = 256 * 1024
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
_LENGTHS = struct.Struct("!II")


class BadFrameError(UsageError):
    """The peer does not speak this protocol; its connection is of no further use."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bad-frame")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: `header["op"]` says which."""

    header: Mapping[str, object]
    payload: bytes = b""

    @property
    def op(self) -> str:
        """The operation's name; BadFrameError when there is none."""
        return self.text("op")

    def text(self, key: str) -> str:
        """A string of the header; BadFrameError when it is missing or something else."""
        value = self.header.get(key)
        if not isinstance(value, str):
            raise BadFrameError(f"a frame needs the string {key!r}")
        return value

    def number(self, key: str) -> int:
        """A whole number of the header; BadFrameError when it is missing or something else."""
        value = self.header.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadFrameError(f"a frame needs the number {key!r}")
        return value

    def real(self, key: str) -> float:
        """A finite number of the header; BadFrameError when it is missing or something else."""
        value = self.header.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                real = float(value)
            except OverflowError:
                real = math.inf
            if math.isfinite(real):
                return real
        raise BadFrameError(f"a frame needs the finite number {key!r}")

    def mapping(self, key: str) -> Mapping[str, object]:
        """An object of the header; BadFrameError when it is missing or something else."""
        value = self.header.get(key)
        if not isinstance(value, dict):
            raise BadFrameError(f"a frame needs the object {key!r}")
        return value


def encode(header: Mapping[str, object], payload: bytes = b"") -> bytes:
    """A frame's bytes. Raises ValueError for a header or payload over the bounds."""
    head = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    if len(head) > MAX_HEADER_BYTES or len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError("a frame is over its bounds")
    return _LENGTHS.pack(len(head), len(payload)) + head + payload


class FrameReader:
    """Cuts a byte stream into frames, however the bytes arrive. Not thread-safe."""

    def __init__(self, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        self._buffer = bytearray()
        self._max_payload_bytes = max_payload_bytes

    def feed(self, data: bytes) -> list[Frame]:
        """Frames completed by `data`; raises BadFrameError as soon as one cannot be right."""
        self._buffer += data
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        if len(self._buffer) < _LENGTHS.size:
            return None
        head_bytes, payload_bytes = _LENGTHS.unpack_from(self._buffer)
        if head_bytes > MAX_HEADER_BYTES or payload_bytes > self._max_payload_bytes:
            raise BadFrameError("a frame is over its bounds")
        head_end = _LENGTHS.size + head_bytes
        end = head_end + payload_bytes
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            head, payload = bytes(view[_LENGTHS.size : head_end]), bytes(view[head_end:end])
        del self._buffer[:end]
        return Frame(_parse(head), payload)


def _parse(head: bytes) -> Mapping[str, object]:
    try:
        header = json.loads(head, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadFrameError("a frame's header is not JSON") from error
    if not isinstance(header, dict):
        raise BadFrameError("a frame's header is not a JSON object")
    return header


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
