"""How fast a job is going, and when it will be done. Pure: marks of its progress in, seconds out.

The rate is that of a sliding window over the job's own finished characters: it counts neither the
loading of a model, which came before the first of them, nor what was true minutes ago, when the
farm may have been the job's alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_S = 30.0  # long enough to even out batches, short enough to notice a neighbour
ENOUGH_SEGMENTS = 20  # in a window; a slower job has a longer one
FEWEST_SEGMENTS = 4  # else a rate would be noise
LONGEST_S = 600.0  # marks older than this are not read


@dataclass(frozen=True, slots=True)
class Mark:
    """What a job had settled at some time: characters and segments, since its beginning."""

    at: float
    chars: int
    segments: int


def recent_rate(marks: Sequence[Mark], now: Mark) -> float | None:
    """Characters per second of late, or None when too little is done to tell.

    `marks` come oldest first; `now` is the state of this moment. The window reaches back to the
    newest mark that is WINDOW_S old and has ENOUGH_SEGMENTS after it, else to the oldest mark.
    """
    base: Mark | None = None
    for mark in reversed(marks):
        base = mark
        if now.at - mark.at >= WINDOW_S and now.segments - mark.segments >= ENOUGH_SEGMENTS:
            break
    if base is None or now.segments - base.segments < FEWEST_SEGMENTS or now.at <= base.at:
        return None
    return (now.chars - base.chars) / (now.at - base.at)


def time_left_s(marks: Sequence[Mark], now: Mark, *, chars_left: int) -> float | None:
    """Seconds until the last character is spoken, at the recent rate; None: not known."""
    rate = recent_rate(marks, now)
    return None if not rate else chars_left / rate


@dataclass(frozen=True, slots=True)
class Assembled:
    """A past assembly: the audio of its last part, and what came after its last rendered segment.

    Both in seconds.
    """

    audio_s: float
    took_s: float


# What assembling takes a second of audio until it has been seen: 100 x real time, as MP3 on one
# loaded core. The prior weighs as much as ten minutes of audio.
_PRIOR = Assembled(audio_s=600.0, took_s=6.0)


def assembly_s(audio_s: float, past: Sequence[Assembled]) -> float:
    """Expected time from the last rendered segment to the finished file of `audio_s` seconds."""
    seen = [*past, _PRIOR]
    return audio_s * sum(one.took_s for one in seen) / sum(one.audio_s for one in seen)
