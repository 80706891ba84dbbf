"""Stitching: clips and pauses become one stream of samples, with every clip's exact position.

Memory stays constant: one clip and the resampler's window. Knows no file format.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import soxr

from worker.engines.base import Samples

LEAD_IN_S = 0.1  # silence before a part's first clip: players swallow the very first samples
GUARD_S = 0.010  # near-silence left around a clip's sound, so that no soft onset is cut
FADE_S = 0.004  # raised cosine at both ends of a clip: no click whatever the engine leaves there
FLOOR_DB = -60.0  # below this an edge counts as silence; the quietest fricatives lie 15 dB above
_FRAME_S = 0.005


@dataclass(frozen=True, slots=True)
class Clip:
    """One segment's audio (float32 mono at the engine's rate; empty for a pause) and its pause."""

    index: int
    samples: Samples
    pause_after_s: float


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a clip's sound lies in the delivered file, in samples of the delivered rate."""

    index: int
    start_sample: int
    end_sample: int


class Stitcher:
    """Joins the clips of one part. Iterate `blocks`, then read `placed` and `total_samples`."""

    def __init__(self, *, in_rate_hz: int, out_rate_hz: int) -> None:
        self._in_rate_hz = in_rate_hz
        self._out_rate_hz = out_rate_hz
        self._written = 0  # samples at the engine's rate so far
        self.placed: list[Placed] = []
        self.total_samples = 0

    def blocks(self, clips: Iterable[Clip]) -> Iterator[Samples]:
        """Blocks of float32 mono samples at the delivered rate, converted once by soxr."""
        if self._in_rate_hz == self._out_rate_hz:
            for block in self._joined(clips):
                self.total_samples += len(block)
                yield block
            return
        resampler = soxr.ResampleStream(
            self._in_rate_hz, self._out_rate_hz, 1, dtype="float32", quality="HQ"
        )
        # One block is held back: the resampler must be told which one is the last.
        held: Samples = np.zeros(0, np.float32)
        for block in self._joined(clips):
            yield from self._converted(resampler, held, last=False)
            held = block
        yield from self._converted(resampler, held, last=True)

    def _converted(
        self, resampler: soxr.ResampleStream, block: Samples, *, last: bool
    ) -> Iterator[Samples]:
        out = resampler.resample_chunk(block, last=last)
        self.total_samples += len(out)
        if len(out):
            yield out

    def _joined(self, clips: Iterable[Clip]) -> Iterator[Samples]:
        yield self._silence(LEAD_IN_S)
        for clip in clips:
            sound = faded(trimmed(clip.samples, self._in_rate_hz), self._in_rate_hz)
            if len(sound):
                start = self._written
                self._written += len(sound)
                self.placed.append(
                    Placed(clip.index, self._delivered(start), self._delivered(self._written))
                )
                yield sound
            if clip.pause_after_s > 0:
                yield self._silence(clip.pause_after_s)

    def _silence(self, seconds: float) -> Samples:
        length = round(seconds * self._in_rate_hz)
        self._written += length
        return np.zeros(length, np.float32)

    def _delivered(self, position: int) -> int:
        """A position at the engine's rate as one at the delivered rate, by integers."""
        return (position * self._out_rate_hz + self._in_rate_hz // 2) // self._in_rate_hz


def trimmed(samples: Samples, rate_hz: int) -> Samples:
    """The clip without near-silence at its ends, but for a guard, so that pauses come out as asked.

    A clip that is quiet throughout is returned whole: silence may be what the engine meant.
    """
    frame = max(1, round(_FRAME_S * rate_hz))
    count = len(samples) // frame
    if count == 0:
        return samples
    peaks = np.abs(samples[: count * frame].reshape(count, frame)).max(axis=1)
    loud = np.flatnonzero(peaks > 10 ** (FLOOR_DB / 20))
    if not len(loud):
        return samples
    guard = round(GUARD_S * rate_hz)
    start = max(0, int(loud[0]) * frame - guard)
    end = int(loud[-1] + 1) * frame
    tail = samples[end:]  # a rest shorter than a frame is kept if it is loud
    if len(tail) < frame and len(tail) and np.abs(tail).max() > 10 ** (FLOOR_DB / 20):
        end = len(samples)
    return samples[start : min(len(samples), end + guard)]


def faded(samples: Samples, rate_hz: int) -> Samples:
    """The clip with raised-cosine ends, as a copy."""
    length = min(round(FADE_S * rate_hz), len(samples) // 2)
    if length == 0:
        return samples.astype(np.float32, copy=True)
    ramp = (0.5 - 0.5 * np.cos(np.pi * (np.arange(length) + 0.5) / length)).astype(np.float32)
    out = samples.astype(np.float32, copy=True)
    out[:length] *= ramp
    out[-length:] *= ramp[::-1]
    return out
