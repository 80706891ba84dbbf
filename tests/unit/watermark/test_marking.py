"""Marking: the same bits for any blocks, as many samples out as in, and silence left alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import UsageError
from tests.unit.watermark.conftest import RATE_HZ, in_blocks, marked
from worker.engines.base import Samples
from worker.watermark.grid import RATES_HZ
from worker.watermark.keys import MarkKey
from worker.watermark.marker import HEADROOM_DB, Marker
from worker.watermark.trace import Trace, trace_of


@pytest.fixture(scope="module")
def noises() -> dict[int, Samples]:
    """A second and a half of noise with pauses, at each rate."""
    rng = np.random.default_rng(3)
    made = {}
    for rate_hz in RATES_HZ:
        samples = rng.standard_normal(round(1.5 * rate_hz)).astype(np.float32) * np.float32(0.1)
        samples[rate_hz // 2 : rate_hz * 3 // 4] = 0
        made[rate_hz] = samples
    return made


@settings(max_examples=30, deadline=None)
@given(
    rate_hz=st.sampled_from(RATES_HZ),
    lengths=st.lists(st.integers(0, 9_000) | st.integers(0, 40), max_size=12),
    cut=st.integers(0, 40_000),
)
def test_any_split_into_blocks_gives_the_same_bits(
    noises: dict[int, Samples], rate_hz: int, lengths: list[int], cut: int
) -> None:
    key = MarkKey(1, bytes(range(32)))
    trace = trace_of(key, "job", "audio.wav")
    samples = noises[rate_hz][:cut]
    whole = marked(samples, rate_hz, key, trace)
    assert len(whole) == len(samples)
    assert np.array_equal(whole, in_blocks(Marker(key, trace, rate_hz), samples, lengths))


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_digital_silence_stays_silent(
    noises: dict[int, Samples], key: MarkKey, trace: Trace, rate_hz: int
) -> None:
    samples = noises[rate_hz]
    out = marked(samples, rate_hz, key, trace)
    assert not np.any(out[rate_hz // 2 : rate_hz * 3 // 4])
    assert np.mean(out[: rate_hz // 2] != samples[: rate_hz // 2]) > 0.99
    assert not np.any(marked(np.zeros(rate_hz, np.float32), rate_hz, key, trace))


def test_it_comes_out_within_a_ninth_of_a_second(key: MarkKey, trace: Trace) -> None:
    rng = np.random.default_rng(4)
    for rate_hz in RATES_HZ:
        marker, given_out = Marker(key, trace, rate_hz), 0
        for taken in range(100, rate_hz, 100):
            block = rng.standard_normal(100).astype(np.float32)
            given_out += len(marker.write(block))
            assert taken - given_out <= 0.106 * rate_hz + 100, rate_hz


def test_another_file_starts_elsewhere_in_the_map(
    speech: Samples, key: MarkKey, trace: Trace
) -> None:
    other = Trace(trace.trace_id, trace.start_block + 1)
    one, two = (marked(speech[:48_000], RATE_HZ, key, where) for where in (trace, other))
    changes = [made - speech[:48_000] for made in (one, two)]
    assert abs(np.corrcoef(*changes)[0, 1]) < 0.3


def test_the_mark_is_small_and_fits_its_headroom(speech: Samples, marked_speech: Samples) -> None:
    change = marked_speech - speech
    assert np.sqrt(np.mean(change**2) / np.mean(speech**2)) < 0.13  # -17.7 dB
    lift_db = 20 * np.log10(np.abs(marked_speech).max() / np.abs(speech).max())
    assert lift_db < HEADROOM_DB


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_sound_is_refused(key: MarkKey, trace: Trace, bad: float) -> None:
    marker = Marker(key, trace, RATE_HZ)
    with pytest.raises(UsageError, match="finite"):
        marker.write(np.array([0.0, bad], np.float32))
    with pytest.raises(UsageError, match="one channel"):
        marker.write(np.zeros((4, 2), np.float32))


def test_other_rates_are_refused(key: MarkKey, trace: Trace) -> None:
    with pytest.raises(UsageError, match="11025"):
        Marker(key, trace, 11_025)


def test_which_marks_a_file_gets_depends_on_its_rate(key: MarkKey, trace: Trace) -> None:
    assert Marker(key, trace, 24_000).marks == ("in-band",)
    assert Marker(key, trace, 44_100).marks == ("in-band", "high-band")
