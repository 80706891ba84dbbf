"""Stitching: positions, pauses, seams, one conversion, flat memory."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
import soxr
from hypothesis import given
from hypothesis import strategies as st

from worker.assembly.stitch import FADE_S, GUARD_S, LEAD_IN_S, Clip, Stitcher, trimmed

RATE = 24_000


def tone(seconds: float, *, amplitude: float = 0.3, rate: int = RATE) -> np.ndarray:
    t = np.arange(round(seconds * rate)) / rate
    return (amplitude * np.sin(2 * np.pi * 440 * t)).astype(np.float32)


def padded(sound: np.ndarray, before_s: float, after_s: float) -> np.ndarray:
    return np.concatenate(
        [np.zeros(round(before_s * RATE)), sound, np.zeros(round(after_s * RATE))]
    ).astype(np.float32)


def stitch(clips: list[Clip], out_rate: int = RATE) -> tuple[np.ndarray, Stitcher]:
    stitcher = Stitcher(in_rate_hz=RATE, out_rate_hz=out_rate)
    return np.concatenate(list(stitcher.blocks(clips))), stitcher


@pytest.mark.parametrize("out_rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_pauses_come_out_as_asked_whatever_silence_the_engine_leaves(out_rate: int) -> None:
    clips = [
        Clip(0, padded(tone(0.5), 0.2, 0.35), 0.3),
        Clip(1, padded(tone(0.4), 0.05, 0.0), 0.7),
        Clip(2, padded(tone(0.4), 0.6, 0.1), 0.0),
    ]
    samples, stitcher = stitch(clips, out_rate)
    loud = np.flatnonzero(np.abs(samples) > 0.02)
    gaps = np.diff(loud)
    pauses_s = gaps[gaps > out_rate * 0.1] / out_rate
    assert pauses_s == pytest.approx([0.3, 0.7], abs=FADE_S)  # a fade softens a hard edge
    assert [p.index for p in stitcher.placed] == [0, 1, 2]
    assert stitcher.total_samples == len(samples)


@given(
    st.lists(
        st.tuples(st.integers(0, 2_000), st.integers(0, 2_000), st.integers(0, 3_000)),
        min_size=2,
        max_size=6,
    )
)
def test_the_pause_that_is_heard_is_the_one_asked_for_to_the_sample(
    shape: list[tuple[int, int, int]],
) -> None:
    # A sound whose ends survive the fade: near-silence under the floor, then the sound itself.
    sound = tone(0.05) + np.float32(0.4)
    quiet = np.float32(0.0009)
    clips = [
        Clip(
            i,
            np.concatenate([np.full(before, quiet), sound, np.full(after, quiet)]),
            pause / RATE,
        )
        for i, (before, after, pause) in enumerate(shape)
    ]
    samples, _ = stitch(clips)
    loud = np.flatnonzero(np.abs(samples) > 0.001)
    heard = np.diff(loud)[np.diff(loud) > 1] - 1
    guard = round(GUARD_S * RATE)
    fade = round(FADE_S * RATE)
    for (_, after, pause), (before, _, _), gap in zip(shape, shape[1:], heard, strict=False):
        least = min(after, guard) + min(before, guard)  # what is kept cannot be taken away
        softened = fade * ((after < fade) + (before < fade))  # a fade that reaches into the sound
        assert abs(gap - max(pause, least)) <= softened
    assert len(heard) == len(shape) - 1


def test_every_clip_lies_exactly_where_it_is_said_to_lie() -> None:
    clips = [Clip(i, tone(0.2 + 0.05 * i), 0.1) for i in range(5)]
    samples, stitcher = stitch(clips)
    assert stitcher.placed[0].start_sample == round(LEAD_IN_S * RATE)
    for placed, clip in zip(stitcher.placed, clips, strict=True):
        assert placed.end_sample - placed.start_sample == len(clip.samples)
        heard = samples[placed.start_sample : placed.end_sample]
        middle = slice(200, -200)
        np.testing.assert_array_equal(heard[middle], clip.samples[middle])
        assert not samples[placed.end_sample : placed.end_sample + 2_000].any()


def test_a_seam_has_no_click_even_when_the_engine_ends_at_full_level() -> None:
    square = np.ones(RATE // 2, np.float32) * 0.5
    samples, _ = stitch([Clip(0, square, 0.0), Clip(1, -square, 0.0)])
    assert np.abs(np.diff(samples)).max() < 0.02


def test_the_rate_is_converted_once_equal_to_the_whole_in_one_piece() -> None:
    clips = [Clip(i, tone(0.31), 0.17) for i in range(7)]
    whole, _ = stitch(clips)
    converted, _ = stitch(clips, 44_100)
    np.testing.assert_array_equal(converted, soxr.resample(whole, RATE, 44_100, quality="HQ"))


def test_a_soft_onset_is_not_cut() -> None:
    # The quietest fricatives of the default voice lie near -45 dBFS.
    hiss = (np.random.default_rng(0).standard_normal(RATE // 10) * 0.006).astype(np.float32)
    clip = padded(np.concatenate([hiss, tone(0.3), hiss]), 0.2, 0.2)
    kept, _, _ = trimmed(clip, RATE)
    assert len(kept) >= len(hiss) * 2 + round(0.3 * RATE)
    assert len(kept) <= len(hiss) * 2 + round((0.3 + 2 * GUARD_S + 0.011) * RATE)


def test_a_clip_that_is_quiet_throughout_is_kept_whole() -> None:
    quiet = np.full(RATE, 1e-5, np.float32)
    kept, before, after = trimmed(quiet, RATE)
    assert (len(kept), before, after) == (RATE, 0, 0)


def test_a_silent_piece_is_only_its_pause() -> None:
    samples, stitcher = stitch([Clip(0, np.zeros(0, np.float32), 0.5)])
    assert stitcher.placed == []
    assert len(samples) == round((LEAD_IN_S + 0.5) * RATE)


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.floats(0, 0.05)), max_size=8),
    st.sampled_from([8_000, 24_000, 44_100]),
)
def test_positions_are_ordered_and_inside_the_file(
    shape: list[tuple[int, float]], out_rate: int
) -> None:
    clips = [Clip(i, np.full(n, 0.1, np.float32), pause) for i, (n, pause) in enumerate(shape)]
    samples, stitcher = stitch(clips, out_rate)
    edges = [edge for p in stitcher.placed for edge in (p.start_sample, p.end_sample)]
    assert edges == sorted(edges)
    assert all(edge <= len(samples) + 1 for edge in edges)
    assert [p.index for p in stitcher.placed] == [i for i, (n, _) in enumerate(shape) if n]


def test_two_hours_take_no_more_memory_than_two_minutes() -> None:
    def peak_bytes(clips: int) -> int:
        def source() -> Iterator[Clip]:
            for index in range(clips):
                yield Clip(index, tone(4.0), 0.3)

        stitcher = Stitcher(in_rate_hz=RATE, out_rate_hz=RATE)
        tracemalloc.start()
        for block in stitcher.blocks(source()):
            assert len(block) < RATE * 6
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak_bytes(1_700) < peak_bytes(30) * 1.3 + 500_000
