"""What a mark says: a 64-bit trace id, and a tag that only the key can make. Knows no audio.

The id comes from the key, the job and the deliverable's name, and the place in the chip map where
the file starts from key and id: made again after a crash, the file is the same, and who reads an id
knows how far into the file he is.
"""

import hmac
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from worker.watermark.chips import BLOCKS
from worker.watermark.keys import MarkKey

Bits = npt.NDArray[np.uint8]

ID_BYTES = 8
TAG_BYTES = 4
PAYLOAD_BITS = 8 * (ID_BYTES + TAG_BYTES)


@dataclass(frozen=True, slots=True)
class Trace:
    """What one deliverable is marked with: its trace id (16 hexadecimal digits) and first block."""

    trace_id: str
    start_block: int


def trace_of(key: MarkKey, job_id: str, deliverable: str) -> Trace:
    """The deliverable's trace, the same at every call."""
    identity = key.derived("trace", job_id.encode(), deliverable.encode())[:ID_BYTES]
    return trace_with(key, identity.hex())


def trace_with(key: MarkKey, trace_id: str) -> Trace:
    """The trace of an id that was read from a mark: where its file starts follows from it."""
    start = key.derived("start", bytes.fromhex(trace_id))
    return Trace(trace_id, int.from_bytes(start[:8], "big") % BLOCKS)


def payload(key: MarkKey, trace_id: str) -> Bits:
    """Id and tag as `PAYLOAD_BITS` bits."""
    identity = bytes.fromhex(trace_id)
    if len(identity) != ID_BYTES:
        raise ValueError("a trace id has 16 hexadecimal digits")
    return np.unpackbits(np.frombuffer(identity + _tag(key, identity), np.uint8))


def trace_id_in(key: MarkKey, bits: Bits) -> str | None:
    """The trace id in a payload; None where the tag is not this key's (by chance: 1 in 2^32)."""
    data = np.packbits(bits).tobytes()
    identity, tag = data[:ID_BYTES], data[ID_BYTES:]
    return identity.hex() if hmac.compare_digest(tag, _tag(key, identity)) else None


def _tag(key: MarkKey, identity: bytes) -> bytes:
    return key.derived("tag", identity)[:TAG_BYTES]
