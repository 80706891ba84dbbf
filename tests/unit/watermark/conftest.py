"""Half a minute of speech, unmarked and marked, for all tests of the watermark."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.hosts import utterance
from worker.assembly.stitch import Clip, Stitcher
from worker.engines.base import Samples
from worker.engines.hibari import build
from worker.watermark.keys import MarkKey
from worker.watermark.marker import Marker
from worker.watermark.trace import Trace, trace_of

RATE_HZ = 24_000
TEXTS = (
    "The lighthouse keeper climbed the narrow stairs every evening, long before the sun went down.",
    "He carried a basket with bread, a bottle of cold tea, and the letters of the day.",
    "From the gallery he could see the whole bay, the harbour, and the road to the village.",
    "Sometimes a ship passed so close that he heard the sailors singing on its deck.",
    "On such nights he let the lamp burn a little brighter than the rules allowed.",
    "Nobody ever asked him why, and he never told anyone but the cat.",
)


def marked(samples: Samples, rate_hz: int, key: MarkKey, trace: Trace) -> Samples:
    return in_blocks(Marker(key, trace, rate_hz), samples, [len(samples)])


def in_blocks(marker: Marker, samples: Samples, lengths: Sequence[int]) -> Samples:
    pieces, done = [], 0
    for length in lengths:
        pieces.append(marker.write(samples[done : done + length]))
        done += length
    return np.concatenate([*pieces, marker.write(samples[done:]), marker.finish()])


@pytest.fixture(scope="session")
def speech() -> Samples:
    """About 30 s at 24 kHz."""
    engine = build()
    clips = []
    for number, text in enumerate(TEXTS):
        engine.admit([utterance(text, voice="heart", seed=number)])
        (chunk,) = engine.step()
        clips.append(Clip(number, chunk.samples, 0.4))
    stitcher = Stitcher(in_rate_hz=RATE_HZ, out_rate_hz=RATE_HZ)
    return np.concatenate(list(stitcher.blocks(clips)))


@pytest.fixture(scope="session")
def key() -> MarkKey:
    return MarkKey(1, bytes(range(32)))


@pytest.fixture(scope="session")
def trace(key: MarkKey) -> Trace:
    return trace_of(key, "job-1", "03-the-storm.mp3")


@pytest.fixture(scope="session")
def marked_speech(speech: Samples, key: MarkKey, trace: Trace) -> Samples:
    return marked(speech, RATE_HZ, key, trace)


@pytest.fixture(scope="session")
def mark() -> Callable[[Samples, int, MarkKey, Trace], Samples]:
    return marked
