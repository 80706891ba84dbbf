"""Verification after encoding: a marked file passes, whatever else does not."""

import numpy as np

from tests.unit.watermark.conftest import RATE_HZ
from worker.engines.base import Samples
from worker.watermark.keys import MarkKey
from worker.watermark.trace import Trace, trace_of
from worker.watermark.verify import verify


def blocks(samples: Samples) -> list[Samples]:
    return [samples[first : first + 33_333] for first in range(0, len(samples), 33_333)]


def test_a_marked_file_is_verified(marked_speech: Samples, key: MarkKey, trace: Trace) -> None:
    found = verify(key, trace, blocks(marked_speech), RATE_HZ)
    assert found.verified
    assert found.blind is True
    assert not found.too_short
    assert found.z > 50
    assert abs(found.delay_s) <= 0.002


def test_a_codecs_delay_is_found(marked_speech: Samples, key: MarkKey, trace: Trace) -> None:
    late = np.concatenate([np.zeros(round(0.048 * RATE_HZ), np.float32), marked_speech])
    found = verify(key, trace, blocks(late), RATE_HZ)
    assert found.verified
    assert abs(found.delay_s - 0.048) < 0.003


def test_no_mark_and_the_mark_of_another_file_are_not_verified(
    speech: Samples, marked_speech: Samples, key: MarkKey, trace: Trace
) -> None:
    assert not verify(key, trace, blocks(speech), RATE_HZ).verified
    other = trace_of(key, "job-1", "04-the-calm.mp3")
    found = verify(key, other, blocks(marked_speech), RATE_HZ)
    assert not found.verified
    assert found.blind is False


def test_a_file_marked_in_part_is_not_verified(
    speech: Samples, marked_speech: Samples, key: MarkKey, trace: Trace
) -> None:
    half = np.concatenate([marked_speech, speech])
    found = verify(key, trace, blocks(half), RATE_HZ)
    assert found.weak_s
    assert not found.verified


def test_a_file_with_hardly_any_speech_says_so(key: MarkKey, trace: Trace) -> None:
    for length in (0, 1, RATE_HZ):
        found = verify(key, trace, [np.zeros(length, np.float32)], RATE_HZ)
        assert found.too_short
        assert found.blind is None


def test_a_sentence_alone_is_still_found(
    marked_speech: Samples, key: MarkKey, trace: Trace
) -> None:
    found = verify(key, trace, [marked_speech[: 3 * RATE_HZ]], RATE_HZ)
    assert found.too_short
    assert found.verified
