"""Finding a mark: whose it is after codecs and other speeds, and nothing where there is none."""

import io

import lameenc
import numpy as np
import pytest
import soundfile
import soxr

from shared.errors import UsageError
from tests.unit.watermark.conftest import RATE_HZ, marked
from worker.engines.base import Samples
from worker.watermark.detect import FALSE_RATE, Detector, Finding, Speeds
from worker.watermark.highband import read_high
from worker.watermark.keys import Keyring, MarkKey
from worker.watermark.scan import scan
from worker.watermark.search import threshold
from worker.watermark.trace import Trace, trace_of

START_S, END_S = 6.123, 21.123
WRONG = MarkKey(9, bytes(range(5, 37)))


@pytest.fixture(scope="module")
def detector(key: MarkKey) -> Detector:
    return Detector(Keyring((key,)))


@pytest.fixture(scope="module")
def excerpt(marked_speech: Samples) -> Samples:
    """15 s from the middle."""
    return marked_speech[round(START_S * RATE_HZ) : round(END_S * RATE_HZ)]


def mp3(samples: Samples, rate_hz: int, kbps: int) -> Samples:
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_channels(1)
    encoder.set_in_sample_rate(rate_hz)
    encoder.set_bit_rate(kbps)
    pcm = (np.clip(samples, -1, 1) * 32_767).astype(np.int16)
    data = bytes(encoder.encode(pcm.tobytes())) + bytes(encoder.flush())
    decoded, decoded_hz = soundfile.read(io.BytesIO(data), dtype="float32")
    assert decoded_hz == rate_hz
    return decoded


def is_right(found: Finding, trace: Trace, *, off_by_s: float = 0.1) -> bool:
    assert found.present
    assert found.z > found.threshold
    return (
        found.trace_id == trace.trace_id
        and found.offset_s is not None
        and abs(found.offset_s - START_S) < off_by_s
    )


def test_an_excerpt_tells_whose_it_is_and_where_it_begins(
    detector: Detector, excerpt: Samples, trace: Trace
) -> None:
    found = detector.excerpt(excerpt, RATE_HZ)
    assert is_right(found, trace, off_by_s=0.003)
    assert (found.epoch, found.speed) == (1, 1.0)


def test_it_does_so_after_mp3_at_64_kbit(
    detector: Detector, excerpt: Samples, trace: Trace
) -> None:
    assert is_right(detector.excerpt(mp3(excerpt, RATE_HZ, 64), RATE_HZ), trace)


@pytest.mark.parametrize("rate_hz", [16_000, 8_000])
def test_it_does_so_at_another_rate(
    detector: Detector, excerpt: Samples, trace: Trace, rate_hz: int
) -> None:
    assert is_right(detector.excerpt(soxr.resample(excerpt, RATE_HZ, rate_hz), rate_hz), trace)


def test_level_clipping_and_numbers_that_are_none_do_not_hide_it(
    detector: Detector, excerpt: Samples, trace: Trace
) -> None:
    loud = np.clip(excerpt * np.float32(4 / np.abs(excerpt).max()), -1, 1)
    assert is_right(detector.excerpt(loud, RATE_HZ), trace)
    holes = excerpt * np.float32(1e-4)
    holes[1_000:1_020] = np.nan
    holes[90_000] = np.inf
    assert is_right(detector.excerpt(holes, RATE_HZ), trace)


@pytest.mark.parametrize("rate_hz", [22_050, 44_100])
def test_marks_made_at_any_rate_are_found(
    detector: Detector, speech: Samples, key: MarkKey, trace: Trace, rate_hz: int
) -> None:
    made = marked(soxr.resample(speech, RATE_HZ, rate_hz), rate_hz, key, trace)
    cut = made[round(START_S * rate_hz) : round(END_S * rate_hz)]
    assert is_right(detector.excerpt(cut, rate_hz), trace)


def test_another_speed_and_another_tempo_are_found(
    detector: Detector, excerpt: Samples, trace: Trace
) -> None:
    faster = soxr.resample(excerpt, RATE_HZ * 1.0263, RATE_HZ)
    found = detector.excerpt(faster, RATE_HZ, speeds=Speeds.WIDE)
    assert is_right(found, trace)
    assert found.speed * found.tempo == pytest.approx(1.0263, abs=0.001)
    assert detector.excerpt(faster, RATE_HZ).present is False


def test_speech_without_a_mark_has_none(detector: Detector, speech: Samples) -> None:
    found = detector.excerpt(speech, RATE_HZ)
    assert (found.present, found.trace_id, found.epoch) == (False, None, None)
    assert found.z < found.threshold


def test_another_key_finds_nothing(excerpt: Samples) -> None:
    assert Detector(Keyring((WRONG,))).excerpt(excerpt, RATE_HZ).present is False


def test_after_a_rotation_old_and_new_marks_are_found(
    excerpt: Samples, key: MarkKey, trace: Trace, speech: Samples
) -> None:
    detector = Detector(Keyring((key, WRONG)))
    assert is_right(detector.excerpt(excerpt, RATE_HZ), trace)
    new = trace_of(WRONG, "job-2", "audio.wav")
    found = detector.excerpt(marked(speech, RATE_HZ, WRONG, new)[: 15 * RATE_HZ], RATE_HZ)
    assert (found.epoch, found.trace_id) == (9, new.trace_id)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, np.float32),
        np.zeros(1, np.float32),
        np.ones(300, np.float32),
        np.zeros(5 * RATE_HZ, np.float32),
        np.full(5 * RATE_HZ, np.nan, np.float32),
        np.full(5 * RATE_HZ, 1e30, np.float32),
        np.sin(np.arange(5 * RATE_HZ)).astype(np.float32),
        np.eye(1, 5 * RATE_HZ, 60_000, dtype=np.float32)[0],
    ],
    ids=["empty", "one", "short", "silence", "nan", "huge", "tone", "click"],
)
def test_what_is_no_speech_has_no_mark(detector: Detector, samples: Samples) -> None:
    found = detector.excerpt(samples, RATE_HZ)
    assert found.present is False
    assert np.isfinite(found.z)


def test_two_channels_and_an_hour_at_once_are_refused(detector: Detector) -> None:
    with pytest.raises(UsageError, match="one channel"):
        detector.excerpt(np.zeros((100, 2), np.float32), RATE_HZ)
    with pytest.raises(UsageError, match="at most"):
        detector.excerpt(np.zeros(8_000 * 200, np.float32), 8_000)


@pytest.mark.parametrize("rate_hz", [0, -1, 100, 10**7, float("nan")])
def test_rates_that_no_recording_has_are_refused(detector: Detector, rate_hz: float) -> None:
    samples = np.zeros(1_000, np.float32)
    with pytest.raises(UsageError, match="sample rate"):
        detector.excerpt(samples, rate_hz)
    with pytest.raises(UsageError, match="sample rate"):
        scan(detector, [samples], rate_hz)
    with pytest.raises(UsageError, match="sample rate"):
        read_high(detector.keyring.keys, samples, rate_hz)


def test_the_threshold_is_what_the_count_of_tries_demands() -> None:
    """By Hoeffding: tries times exp(-z²/2) is the false rate."""
    for tries in (1, 10**6, 10**10):
        z = threshold(tries, FALSE_RATE)
        assert tries * np.exp(-(z**2) / 2) == pytest.approx(FALSE_RATE)
