"""Long recordings: marks found from their beginning to their end, in one pass and little memory."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.unit.watermark.conftest import RATE_HZ, marked
from worker.engines.base import Samples
from worker.watermark.detect import Detector
from worker.watermark.keys import Keyring, MarkKey
from worker.watermark.scan import WINDOW_S, scan
from worker.watermark.trace import Trace, trace_of


@pytest.fixture(scope="module")
def detector(key: MarkKey) -> Detector:
    return Detector(Keyring((key,)))


def blocks(samples: Samples, length: int = 50_000) -> Iterator[Samples]:
    for first in range(0, len(samples), length):
        yield samples[first : first + length]


def test_two_files_between_other_speech_are_told_apart(
    detector: Detector, speech: Samples, key: MarkKey, trace: Trace
) -> None:
    second = trace_of(key, "job-2", "audio.mp3")
    window = round(WINDOW_S * RATE_HZ)
    talk = np.resize(speech, window)
    recording = np.concatenate(
        [
            talk,
            marked(np.resize(speech, 2 * window), RATE_HZ, key, trace),
            marked(talk, RATE_HZ, key, second),
            talk,
        ]
    )
    told = list[float]()
    found = scan(detector, blocks(recording), RATE_HZ, progress=told.append)
    assert [stretch.finding.trace_id for stretch in found] == [trace.trace_id, second.trace_id]
    assert [(stretch.start_s, stretch.end_s) for stretch in found] == [
        (pytest.approx(30, abs=0.1), pytest.approx(90, abs=0.1)),
        (pytest.approx(90, abs=0.1), pytest.approx(120, abs=0.1)),
    ]
    assert told == [30.0, 60.0, 90.0, 120.0, 150.0]


def test_a_weak_mark_is_one_stretch_and_windows_that_say_little_are_summed(
    detector: Detector, speech: Samples, key: MarkKey, trace: Trace
) -> None:
    made = marked(np.resize(speech, round(3 * WINDOW_S * RATE_HZ)), RATE_HZ, key, trace)
    noise = np.random.default_rng(6).standard_normal(len(made)) * np.std(made) * 0.6
    found = scan(detector, blocks((made + noise).astype(np.float32)), RATE_HZ)
    assert [(one.start_s, one.end_s, one.finding.trace_id) for one in found] == [
        (pytest.approx(0, abs=0.1), pytest.approx(90, abs=0.1), trace.trace_id)
    ]


def test_a_recording_without_marks_has_none(detector: Detector, speech: Samples) -> None:
    assert scan(detector, blocks(speech), RATE_HZ) == []


def test_nothing_and_little_are_scanned_too(detector: Detector) -> None:
    assert scan(detector, iter(()), RATE_HZ) == []
    assert scan(detector, blocks(np.zeros(10, np.float32)), RATE_HZ) == []
