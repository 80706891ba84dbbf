"""The mark above 18 kHz: read from three seconds where it lives, absent where it cannot."""

import numpy as np
import pytest
import soxr

from tests.unit.watermark.conftest import RATE_HZ, in_blocks, marked
from worker.engines.base import Samples
from worker.watermark.highband import Overlay, read_high
from worker.watermark.keys import MarkKey
from worker.watermark.marker import Marker
from worker.watermark.trace import Trace

WRONG = MarkKey(2, bytes(range(5, 37)))


@pytest.fixture(scope="module", params=[44_100, 48_000])
def rate_hz(request: pytest.FixtureRequest) -> int:
    rate: int = request.param
    return rate


@pytest.fixture(scope="module")
def wide(speech: Samples, rate_hz: int) -> Samples:
    converted: Samples = soxr.resample(speech[: 9 * RATE_HZ], RATE_HZ, rate_hz)
    return converted


def test_three_seconds_are_enough(wide: Samples, rate_hz: int, key: MarkKey, trace: Trace) -> None:
    made = marked(wide, rate_hz, key, trace)
    for start in (0.0, 1.234, 5.5):
        cut = made[round(start * rate_hz) : round((start + 3) * rate_hz)]
        found = read_high((WRONG, key), cut, rate_hz)
        assert (found.present, found.epoch, found.trace_id) == (True, 1, trace.trace_id)


def test_the_other_rate_keeps_it_and_lower_ones_do_not(
    wide: Samples, rate_hz: int, key: MarkKey, trace: Trace
) -> None:
    made = marked(wide, rate_hz, key, trace)
    kept = soxr.resample(made, rate_hz, 92_100 - rate_hz)
    assert read_high((key,), kept, 92_100 - rate_hz).trace_id == trace.trace_id
    lost = soxr.resample(made, rate_hz, 32_000)
    assert read_high((key,), lost, 32_000).present is False
    back = soxr.resample(lost, 32_000, rate_hz)
    assert read_high((key,), back, rate_hz).present is False


def test_no_mark_and_another_key_read_nothing(
    wide: Samples, rate_hz: int, key: MarkKey, trace: Trace
) -> None:
    assert read_high((key,), wide, rate_hz).present is False
    made = marked(wide, rate_hz, key, trace)
    assert read_high((WRONG,), made, rate_hz).present is False
    for samples in (np.zeros(0, np.float32), np.full(rate_hz, np.nan, np.float32)):
        assert read_high((key,), samples, rate_hz).present is False


def test_it_lies_above_18_khz_at_its_level(key: MarkKey, trace: Trace, rate_hz: int) -> None:
    added = Overlay(key, trace.trace_id, rate_hz)(777, 10 * rate_hz)
    assert 20 * np.log10(np.std(added)) == pytest.approx(-66, abs=0.2)
    energy = np.abs(np.fft.rfft(added)) ** 2
    outside = np.fft.rfftfreq(len(added), 1 / rate_hz) < 17_950
    assert energy[outside].sum() < 1e-3 * energy.sum()


def test_any_split_gives_the_same_bits_and_silence_stays_silent(
    wide: Samples, rate_hz: int, key: MarkKey, trace: Trace
) -> None:
    samples = wide[: 2 * rate_hz].copy()
    samples[rate_hz : rate_hz + 9_000] = 0
    whole = marked(samples, rate_hz, key, trace)
    assert np.array_equal(
        whole, in_blocks(Marker(key, trace, rate_hz), samples, [7, 12_345, 1, 30_000])
    )
    assert not np.any(whole[rate_hz : rate_hz + 9_000])
