"""How fast a job is going, and when it will be done. Pure: marks of its progress in, seconds out.

The rate is that of a sliding window over the job's own finished text: it counts neither the
loading of a model, which came before the first of them, nor what was true minutes ago, when the
farm may have been the job's alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.jobs import AudioFormat
from shared.scheduling.cost import Cost

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


def window_base(marks: Sequence[Mark], now: Mark) -> Mark | None:
    """The mark that a rate is read from; None when too little is done since to tell.

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
    return base


def recent_rate(marks: Sequence[Mark], now: Mark, cost: Cost) -> float | None:
    """Work per second of late, in the units of `cost`; None when too little is done to tell."""
    base = window_base(marks, now)
    if base is None:
        return None
    done = cost.of(segments=now.segments - base.segments, chars=now.chars - base.chars)
    return done / (now.at - base.at)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A past assembly: the audio of its last part, and what came after its last rendered segment.

    Both in seconds.
    """

    audio_s: float
    took_s: float


# Until assemblies of a format have been seen: seconds of audio a second, on one busy core. The
# prior weighs as much as ten minutes of audio.
_X_REAL_TIME = {AudioFormat.WAV: 600.0, AudioFormat.FLAC: 500.0, AudioFormat.MP3: 200.0}
_PRIOR_AUDIO_S = 600.0
_OVERHEAD_S = 0.5  # of an assembly of any length: being sent, claimed, closed and delivered


def assembly_s(audio_s: float, format_: AudioFormat, past: Sequence[Assembled]) -> float:
    """Expected time from the last rendered segment to the finished file of `audio_s` seconds."""
    took_s = _PRIOR_AUDIO_S / _X_REAL_TIME[format_]
    took_s += sum(max(0.0, one.took_s - _OVERHEAD_S) for one in past)
    return _OVERHEAD_S + audio_s * took_s / (_PRIOR_AUDIO_S + sum(one.audio_s for one in past))


_PLANNED_CHARS_PER_S = 185_000.0  # the slowest text that was measured
_PLAN_OVERHEAD_S = 0.25  # of a plan of any length: being sent, claimed and written


def steps_s(chars: int, last_part_s: float, format_: AudioFormat) -> float:
    """Expected time of a job that no engine spends: its plan, and the file of its last part.

    By what one core takes for them. Of the past nothing is in it: in how long steps took of late
    lies how long they waited for each other, and that is over with the flood that made them.
    """
    plan_s = _PLAN_OVERHEAD_S + chars / _PLANNED_CHARS_PER_S
    return plan_s + assembly_s(last_part_s, format_, ())
