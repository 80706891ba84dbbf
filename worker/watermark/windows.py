"""A stream of blocks as windows of one length. Knows no watermark."""

from collections.abc import Iterable, Iterator

import numpy as np

from worker.engines.base import Samples


def windows(
    blocks: Iterable[Samples], rate_hz: float, length_s: float
) -> Iterator[tuple[float, Samples]]:
    """Windows of `length_s` seconds and where they begin, in seconds; the last is shorter."""
    length, start = round(length_s * rate_hz), 0
    held, there = list[Samples](), 0
    for block in blocks:
        held.append(block)
        there += len(block)
        while there >= length:
            whole = np.concatenate(held)
            yield start / rate_hz, whole[:length]
            held, there, start = [whole[length:]], there - length, start + length
    if there:
        yield start / rate_hz, np.concatenate(held)
