"""What the detector hears: how much louder or softer each tile is than its neighbourhood. Pure.

A recording is brought to 16 kHz and cut into frames every 2 ms; a reading picks the frames of one
alignment from these, so that another shift or stretch costs no new transform. Knows no key.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.fft
import soxr
from scipy.ndimage import uniform_filter1d

from shared.errors import UsageError
from worker.engines.base import Samples
from worker.watermark.chips import BANDS
from worker.watermark.grid import (
    BINS_PER_BAND,
    FIRST_BIN,
    FRAME_S,
    FRAMES_PER_ROW,
    HOP_S,
    LAST_BIN,
    band_strengths,
)

RATE_HZ = 16_000
FRAME = int(FRAME_S * RATE_HZ)
HOP = int(HOP_S * RATE_HZ)
FINE_HOP = HOP // 4
FINE_HOP_S = FINE_HOP / RATE_HZ

# Tuned on material apart from the tests': benchmarks/LOG.md, "What the watermark's ear leaves out".
_NEIGHBOURHOOD = 9  # frames, and bins; twice, so that its weight falls off to both sides
_LOUDEST = 1.0  # neper; beyond, a cell tells of onsets rather than of the mark
_FLOOR_QUANTILE = 0.1  # of a bin's energy over time: what is there when nobody speaks
_ABOVE_FLOOR = 4.0
_SILENCE = 1e-8  # of the loudest cell's energy

_LOWEST_HZ, _HIGHEST_HZ = 4_000, 768_000

Tiles = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Heard:
    """Fine frames of a recording: log-magnitudes and weights, shape (frames, bins of the tiles).

    `length_s` is the recording's length once its speed is undone; `hop_s` is between the frames.
    """

    levels: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    length_s: float
    hop_s: float

    def rows(self, shift_s: float, stretch: float) -> int:
        """Whole rows from `shift_s` on."""
        frames = int((self.length_s - float(FRAME_S) - shift_s) / (float(HOP_S) * stretch)) + 1
        return max(0, frames // FRAMES_PER_ROW)

    def tiles(self, shift_s: float = 0.0, stretch: float = 1.0) -> Tiles:
        """Tiles of all rows from `shift_s` on, float32 of shape (rows, BANDS); positive: louder.

        `stretch` is how much longer than marked a row lasts here.
        """
        frames = FRAMES_PER_ROW * self.rows(shift_s, stretch)
        if frames == 0:
            return np.zeros((0, BANDS), np.float32)
        wanted_s = shift_s + np.arange(frames) * (float(HOP_S) * stretch)
        places = np.rint(wanted_s / self.hop_s).astype(np.intp)
        places = np.clip(places, 0, len(self.levels) - 1)
        levels = self.levels[places]
        for axis in (0, 1):
            levels -= _around(levels, axis)
        cells = np.clip(levels, -_LOUDEST, _LOUDEST) * self.weights[places]
        shape = (frames // FRAMES_PER_ROW, FRAMES_PER_ROW, BANDS, BINS_PER_BAND)
        tiles: Tiles = cells.reshape(shape).sum(axis=(1, 3)) * _PRIOR
        return tiles


_PRIOR = (band_strengths() / band_strengths().mean()).astype(np.float32)


def check_rate(rate_hz: float) -> None:
    """UsageError for a sample rate that no recording has."""
    if not _LOWEST_HZ <= rate_hz <= _HIGHEST_HZ:
        raise UsageError(
            f"a recording's sample rate lies between {_LOWEST_HZ} and {_HIGHEST_HZ} Hz",
            code="bad-sample-rate",
        )


def listen(samples: Samples, rate_hz: float, *, speed: float = 1.0, hop: int = FINE_HOP) -> Heard:
    """Hear a recording as it was before it was played `speed` times as fast.

    Samples are float32 mono of any level; what is no finite number counts as silence. `hop` is in
    samples of 16 kHz.
    """
    sound = _levelled(samples)
    target_hz = RATE_HZ * speed
    if not math.isclose(target_hz, rate_hz) and len(sound):
        sound = soxr.resample(sound, rate_hz, target_hz, quality="HQ")
    length_s = len(sound) / RATE_HZ
    if len(sound) < FRAME:
        nothing = np.zeros((1, LAST_BIN - FIRST_BIN), np.float32)
        return Heard(nothing, nothing, 0.0, hop / RATE_HZ)
    frames = np.lib.stride_tricks.sliding_window_view(sound, FRAME)[::hop]
    spectra = scipy.fft.rfft(frames * _WINDOW, axis=1)[:, FIRST_BIN:LAST_BIN]
    energy = spectra.real**2 + spectra.imag**2
    loudest = float(energy.max())
    if loudest <= 0.0:
        silent = np.zeros_like(energy)
        return Heard(silent, silent, length_s, hop / RATE_HZ)
    span = (_NEIGHBOURHOOD - 1) * HOP // hop + 1
    around = uniform_filter1d(uniform_filter1d(energy, span, axis=0), _NEIGHBOURHOOD, axis=1)
    # Every so many frames are enough to know the floor by.
    floor = np.quantile(around[:: max(1, HOP // hop)], _FLOOR_QUANTILE, axis=0)
    floor = floor.astype(np.float32) + np.float32(loudest * _SILENCE)
    weights = np.maximum(around, 0) / (np.maximum(around, 0) + _ABOVE_FLOOR * floor)
    levels = 0.5 * np.log(energy + np.float32(loudest * _SILENCE / 10))
    return Heard(levels, weights, length_s, hop / RATE_HZ)


_WINDOW = np.sin(np.pi * (np.arange(FRAME) + 0.5) / FRAME).astype(np.float32)


def _around(levels: npt.NDArray[np.float32], axis: int) -> npt.NDArray[np.float32]:
    once = uniform_filter1d(levels, _NEIGHBOURHOOD, axis=axis, mode="nearest")
    twice: npt.NDArray[np.float32] = uniform_filter1d(
        once, _NEIGHBOURHOOD, axis=axis, mode="nearest"
    )
    return twice


def _levelled(samples: Samples) -> Samples:
    """At full scale, without anything that is no number."""
    sound = np.nan_to_num(samples.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    peak = float(np.abs(sound).max(initial=0.0))
    return sound / np.float32(peak) if peak > 0 else sound
