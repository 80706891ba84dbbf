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
        yield self._silence(round(LEAD_IN_S * self._in_rate_hz))
        owed = 0  # silence asked for since the last sound and not yet there
        for clip in clips:
            kept, quiet_before, quiet_after = trimmed(clip.samples, self._in_rate_hz)
            if len(kept):
                # The guards of both neighbours are part of the pause that is heard.
                if owed > quiet_before:
                    yield self._silence(owed - quiet_before)
                start = self._written
                self._written += len(kept)
                self.placed.append(
                    Placed(clip.index, self._delivered(start), self._delivered(self._written))
                )
                yield faded(kept, self._in_rate_hz)
                owed = -quiet_after
            owed += round(max(0.0, clip.pause_after_s) * self._in_rate_hz)
        if owed > 0:
            yield self._silence(owed)

    def _silence(self, length: int) -> Samples:
        self._written += length
        return np.zeros(length, np.float32)

    def _delivered(self, position: int) -> int:
        """A position at the engine's rate as one at the delivered rate, by integers."""
        return (position * self._out_rate_hz + self._in_rate_hz // 2) // self._in_rate_hz


def trimmed(samples: Samples, rate_hz: int) -> tuple[Samples, int, int]:
    """The clip without near-silence at its ends, but for a guard; and the guards' lengths.

    The lengths are those of the near-silence that is left before and after the sound. A clip that
    is quiet throughout is returned whole, as sound: silence may be what the engine meant.
    """
    loud = np.flatnonzero(np.abs(samples) > 10 ** (FLOOR_DB / 20))
    if not len(loud):
        return samples, 0, 0
    guard = round(GUARD_S * rate_hz)
    first, last = int(loud[0]), int(loud[-1])
    start, end = max(0, first - guard), min(len(samples), last + 1 + guard)
    return samples[start:end], first - start, end - last - 1


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
