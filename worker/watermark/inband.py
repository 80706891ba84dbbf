"""The in-band mark, embedded in a stream: constant memory, any split into blocks, the same bits.

Each cell of the frame grid is made louder or softer by what the chip map says of its tile. Only
the change is added to the sound, so what is not marked passes bit for bit, and digital silence
stays silent. Knows no key and no file; soundness of the level (no clipping) is its caller's.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from shared.errors import UsageError
from worker.engines.base import Samples
from worker.watermark.chips import BLOCKS, ROWS, ChipMap
from worker.watermark.grid import FRAMES_PER_ROW, frame_grid
from worker.watermark.silence import RUN, silent

_CYCLE_FRAMES = 10  # at least so many frames are made at once: 80 ms
_BATCH_FRAMES = 160  # and at most so many


Overlay = Callable[[int, int], Samples]


class InBandMarker:
    """Marks one file. Feed `write` with float32 mono blocks, then `finish`; join what they return.

    `overlay(first sample, samples)` gives what else is added wherever there is no digital silence.

    What comes out has exactly as many samples as went in, at most 106 ms later. Every frame is
    computed by itself (one transform a row), so a block's end never changes a bit.
    """

    def __init__(
        self,
        rate_hz: int,
        chips: ChipMap,
        coded: npt.NDArray[np.uint8],
        start_block: int,
        *,
        overlay: Overlay | None = None,
    ) -> None:
        self._overlay = overlay
        self._grid = frame_grid(rate_hz)
        self._rows = _Rows(chips, coded, start_block)
        self._gain = np.sinh(self._grid.strengths).astype(np.float32)
        self._lift = (np.cosh(self._grid.strengths) - 1.0).astype(np.float32)
        self._cycles_at_once = max(1, _CYCLE_FRAMES // self._grid.frames)
        # What is still needed of the input: `RUN` samples already given out, then the rest.
        self._held = np.ones(RUN, np.float32)  # there is no silence before the beginning
        self._change = np.zeros(0, np.float32)  # of the first samples after those given out
        self._frames_done = 0

    def write(self, samples: Samples) -> Samples:
        """Mark a block; returns what is ready, perhaps nothing. UsageError: not finite numbers."""
        if samples.ndim != 1 or not np.isfinite(samples).all():
            raise UsageError("a watermark needs one channel of finite samples", code="bad-audio")
        self._held = np.concatenate([self._held, samples.astype(np.float32, copy=False)])
        return _joined(self._ready(at_least=self._cycles_at_once))

    def finish(self) -> Samples:
        """The rest: the end is marked as if silence followed."""
        owed = len(self._held) - RUN
        padding = self._grid.fft_length + self._grid.cycle_samples + RUN
        self._held = np.concatenate([self._held, np.zeros(padding, np.float32)])
        return _joined(self._ready(at_least=1))[:owed]

    def _ready(self, *, at_least: int) -> Iterator[Samples]:
        grid = self._grid
        batch = max(1, _BATCH_FRAMES // grid.frames)
        # The last frame of the last cycle must lie in what is held, with a run's length to spare.
        reach = max(grid.starts[-1] + grid.fft_length, grid.cycle_samples + RUN)
        while True:
            there = (len(self._held) - RUN - reach) // grid.cycle_samples + 1
            if there < at_least:
                return
            yield self._marked(min(there, batch))

    def _marked(self, cycles: int) -> Samples:
        """Mark the next cycles and give out as many samples as no later frame will touch."""
        grid = self._grid
        length = cycles * grid.cycle_samples
        change = np.zeros(length + grid.starts[-1] + grid.fft_length, np.float32)
        change[: len(self._change)] = self._change
        sounding = self._held[RUN:]
        signs = self._rows.signs(self._frames_done, cycles * grid.frames)
        for index, start in enumerate(grid.starts):
            frames = np.lib.stride_tricks.as_strided(
                sounding[start:],
                (cycles, grid.fft_length),
                (sounding.strides[0] * grid.cycle_samples, sounding.strides[0]),
                writeable=False,
            )
            made = self._frames(frames, grid.windows[index], signs[index :: grid.frames])
            _overlap_add(change, made, start, grid.cycle_samples)
        quiet = silent(self._held[: RUN + length + RUN])[RUN : RUN + length]
        added = change[:length]
        if self._overlay is not None:
            first = self._frames_done // grid.frames * grid.cycle_samples
            added = added + self._overlay(first, length)
        given = sounding[:length] + np.where(quiet, np.float32(0), added)
        self._change = change[length:]
        self._held = self._held[length:]
        self._frames_done += cycles * grid.frames
        return given

    def _frames(
        self,
        frames: npt.NDArray[np.float32],
        window: npt.NDArray[np.float32],
        signs: npt.NDArray[np.int8],
    ) -> npt.NDArray[np.float32]:
        """The change that each frame asks for, windowed again. Shapes (frames, fft_length)."""
        spectra = np.fft.rfft(frames * window, axis=1)
        inside = self._grid.bins
        moved = np.zeros_like(spectra)
        gains = self._lift + self._gain * signs[:, self._grid.bands]
        moved[:, inside] = spectra[:, inside] * gains
        change: npt.NDArray[np.float32] = (
            np.fft.irfft(moved, self._grid.fft_length, axis=1).astype(np.float32, copy=False)
            * window
        )
        return change


class _Rows:
    """The signs of the frames of a file, whose first row is that of its start block."""

    def __init__(self, chips: ChipMap, coded: npt.NDArray[np.uint8], start_block: int) -> None:
        self._chips = chips
        self._coded = coded
        self._start_block = start_block % BLOCKS
        self._number = -1
        self._signs = np.zeros((0, 0), np.int8)

    def signs(self, first_frame: int, frames: int) -> npt.NDArray[np.int8]:
        """Signs of frames in a row, shape (frames, BANDS)."""
        rows = np.arange(first_frame, first_frame + frames) // FRAMES_PER_ROW
        pieces = []
        for number in range(int(rows[0]) // ROWS, int(rows[-1]) // ROWS + 1):
            if number != self._number:
                self._number = number
                self._signs = self._chips.signs(self._start_block + number, self._coded)
            pieces.append(self._signs[rows[rows // ROWS == number] - number * ROWS])
        return np.concatenate(pieces)


def _overlap_add(
    change: npt.NDArray[np.float32], made: npt.NDArray[np.float32], start: int, stride: int
) -> None:
    """Add frames that begin every `stride` samples from `start` on.

    No sample is within more than two frames' windows, so the order of additions changes no bit.
    """
    length = made.shape[1]
    for first in range(0, length, stride):
        piece = made[:, first : first + stride]
        target = np.lib.stride_tricks.as_strided(
            change[start + first :], piece.shape, (change.strides[0] * stride, change.strides[0])
        )
        target += piece


def _joined(pieces: Iterator[Samples]) -> Samples:
    there = list(pieces)
    return np.concatenate(there) if there else np.zeros(0, np.float32)
