"""The grid of frames and bins that embedder and detector share, at any sample rate. Pure.

Frames of 16 ms every 8 ms under a sine window, bins of 62.5 Hz. A tile is two frames by two bins;
tiles cover 250 to 7,000 Hz. The strength of the mark in a band is a log-magnitude in neper.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt

from shared.errors import UsageError
from worker.watermark.chips import BANDS

FRAME_S = Fraction(16, 1_000)
HOP_S = FRAME_S / 2
FRAMES_PER_ROW = 2
ROW_S = float(FRAMES_PER_ROW * HOP_S)
BIN_HZ = 62.5
FIRST_BIN = 4
BINS_PER_BAND = 2
LAST_BIN = FIRST_BIN + BANDS * BINS_PER_BAND  # the first beyond the tiles
RATES_HZ = (8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)

# Where the ear forgives more, the mark is stronger. Tuned by PESQ against what the detector gains.
_STRENGTH_HZ = (250.0, 1_500.0, 7_000.0)
_STRENGTH_NEPER = (0.09, 0.23, 0.37)


def strengths(frequencies_hz: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How far a cell's log-magnitude is moved, in neper, by frequency."""
    return np.interp(np.log(np.maximum(frequencies_hz, 1.0)), np.log(_STRENGTH_HZ), _STRENGTH_NEPER)


def band_strengths() -> npt.NDArray[np.float64]:
    """The strength in the middle of each band, shape (BANDS,)."""
    middles = FIRST_BIN + BINS_PER_BAND * np.arange(BANDS, dtype=np.float64) + 0.5
    return strengths(middles * BIN_HZ)


@dataclass(frozen=True, slots=True)
class FrameGrid:
    """Frames at one sample rate. Where 8 ms are no whole samples, frames repeat in a cycle.

    `starts` are the first samples of the frames of a cycle, `windows` their windows, of
    `fft_length` samples and shape (frames of a cycle, fft_length).
    """

    cycle_samples: int
    fft_length: int
    starts: tuple[int, ...]
    windows: npt.NDArray[np.float32]
    bins: slice
    bands: npt.NDArray[np.intp]  # of the FFT's bins in `bins`
    strengths: npt.NDArray[np.float64]  # likewise

    @property
    def frames(self) -> int:
        """Frames in a cycle."""
        return len(self.starts)


def frame_grid(rate_hz: int) -> FrameGrid:
    """The grid at a delivery rate. UsageError for any other rate."""
    if rate_hz not in RATES_HZ:
        raise UsageError(f"no watermark at {rate_hz} Hz; rates: {RATES_HZ}", code="bad-sample-rate")
    hop, length = HOP_S * rate_hz, float(FRAME_S * rate_hz)
    frames = hop.denominator
    fft_length = ceil(length) if frames == 1 else _round_length(ceil(length) + 1)
    exact = [index * hop for index in range(frames)]
    starts = tuple(int(position) for position in exact)
    windows = np.zeros((frames, fft_length), np.float32)
    for index, position in enumerate(exact):
        time = np.arange(fft_length) - float(position - starts[index]) + 0.5
        inside = (time > 0) & (time < length)
        windows[index, inside] = np.sin(np.pi * time[inside] / length)
    frequencies_hz = np.arange(fft_length // 2 + 1) * (rate_hz / fft_length)
    bins = np.rint(frequencies_hz / BIN_HZ).astype(np.intp)
    # At 8 kHz the bin at half the rate has no phase to keep: it is left alone.
    (marked,) = np.nonzero(
        (bins >= FIRST_BIN) & (bins < LAST_BIN) & (frequencies_hz < rate_hz / 2 - BIN_HZ / 2)
    )
    return FrameGrid(
        cycle_samples=int(hop * frames),
        fft_length=fft_length,
        starts=starts,
        windows=windows,
        bins=slice(int(marked[0]), int(marked[-1]) + 1),
        bands=(bins[marked] - FIRST_BIN) // BINS_PER_BAND,
        strengths=strengths(bins[marked] * BIN_HZ),
    )


def _round_length(least: int) -> int:
    """The next length that a Fourier transform is fast for: factors 2, 3 and 5."""
    length = least + least % 2
    while True:
        rest = length
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return length
        length += 2
