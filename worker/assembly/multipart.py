"""Writing an encoder's stream to a multipart sink, its first part last.

Memory holds two parts at most: the first one, kept back until the encoder can tell the true head,
and the one being filled. Knows no store: a sink is anything that takes numbered parts.
"""

from collections.abc import Iterable
from typing import Protocol

from worker.assembly.encoders import Encoder
from worker.engines.base import Samples

PART_BYTES = 8 * 1024 * 1024  # S3 wants at least 5 MiB for every part but the last


class Sink(Protocol):
    """Takes parts in any order; numbers start at 1 and leave no gap."""

    def put_part(self, number: int, data: bytes) -> None:
        """Store one part."""
        ...


def write_audio(
    blocks: Iterable[Samples], encoder: Encoder, sink: Sink, *, part_bytes: int = PART_BYTES
) -> int:
    """Encode the blocks into the sink. Returns the file's size in bytes."""
    first: bytes | None = None
    filling = bytearray()
    number, size = 1, 0

    def take(data: bytes) -> None:
        nonlocal first, filling, number, size
        size += len(data)
        filling += data
        while len(filling) > part_bytes:
            part = bytes(filling[:part_bytes])
            del filling[:part_bytes]
            if first is None:
                first = part
            else:
                number += 1
                sink.put_part(number, part)

    for block in blocks:
        take(encoder.write(block))
    take(encoder.finish())
    if first is None:
        first, filling = bytes(filling), bytearray()
    if filling:
        sink.put_part(number + 1, bytes(filling))
    head = encoder.head()
    sink.put_part(1, head + first[len(head) :])
    return size


def write_bytes(pieces: Iterable[bytes], sink: Sink, *, part_bytes: int = PART_BYTES) -> int:
    """Write a plain byte stream into the sink. Returns its size in bytes."""
    filling = bytearray()
    number, size = 0, 0
    for piece in pieces:
        filling += piece
        size += len(piece)
        if len(filling) >= part_bytes:
            number += 1
            sink.put_part(number, bytes(filling))
            filling.clear()
    if filling or number == 0:
        sink.put_part(number + 1, bytes(filling))
    return size
