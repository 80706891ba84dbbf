"""What is waiting, in seconds of audio, and how long until it is done. Pure: figures in and out.

Everything is measured in the audio that engines make, since tiers, voices and lengths differ in
characters but share the same devices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shared.tiers import Tier

LATELY_S = 60.0
ENOUGH_LATELY = 128  # segments; with fewer, older ones are looked at too
STRETCH = 32  # segments that a rate is read from: some full batches
FEWEST = 8
_PRIOR_AUDIO_S = 60.0  # how much measured audio it takes to outweigh what an engine says of itself


@dataclass(frozen=True, slots=True)
class Spoken:
    """A finished segment: when it was claimed and committed, and what came of how much text."""

    claimed_at: float
    done_at: float
    chars: int
    audio_s: float


@dataclass(frozen=True, slots=True)
class Rate:
    """What the farm makes while it has work: seconds of audio per second."""

    audio_s_per_s: float
    segments: int  # how many it was read from


def rate_of(samples: Sequence[Sequence[Spoken]], *, now_s: float, nodes: int) -> Rate | None:
    """The rate while there was much to do, whatever idle time lay between; None: not known.

    `samples` holds each tier's last segments. They are looked at a stretch at a time, and the
    better quarter of the stretches counts from its lower end: a device that is given one sentence
    at a time shows little of what it can do. Too few segments show nothing, and with no node alive
    there is no rate.
    """
    spoken = _together(samples)
    lately = [one for one in spoken if one.done_at >= now_s - LATELY_S]
    looked_at = lately if len(lately) > ENOUGH_LATELY else spoken
    if len(looked_at) <= FEWEST or not nodes:
        return None
    rates = sorted(
        rate
        for start in range(0, len(looked_at) - FEWEST, STRETCH)
        if (rate := _stretch_rate(looked_at[start : start + STRETCH + 1], nodes))
    )
    return Rate(rates[len(rates) * 3 // 4], len(looked_at)) if rates else None


def _stretch_rate(spoken: Sequence[Spoken], nodes: int) -> float | None:
    """Audio seconds a second from the first completion to the last, without idle time.

    Time is idle when no segment was claimed. With fewer segments at once than there are nodes the
    rate grows by that factor, since the other nodes stood by.
    """
    busy_s, claimed_at = 0.0, float("inf")
    for before, one in reversed([*pairwise(spoken)]):
        claimed_at = min(claimed_at, one.claimed_at)
        busy_s += max(0.0, one.done_at - max(before.done_at, claimed_at))
    if busy_s <= 0:
        return None
    counted = spoken[1:]  # the first one only begins the time
    at_once = max(1.0, sum(one.done_at - one.claimed_at for one in counted) / busy_s)
    return sum(one.audio_s for one in counted) / busy_s * max(1.0, nodes / at_once)


def _together(samples: Sequence[Sequence[Spoken]]) -> list[Spoken]:
    """All samples as one, by time of completion, from where all of them are complete."""
    full = max((len(sample) for sample in samples), default=0)
    since = max(
        (min(one.done_at for one in sample) for sample in samples if len(sample) == full > 0),
        default=0.0,
    )
    merged = [one for sample in samples for one in sample if one.done_at >= since]
    return sorted(merged, key=lambda one: one.done_at)


def audio_per_char_s(spoken: Sequence[Spoken], *, chars_per_audio_s: float) -> float:
    """Seconds of audio a character becomes: what the engine says of itself, corrected by what was.

    A minute of measured audio weighs as much as the engine's word.
    """
    chars = _PRIOR_AUDIO_S * chars_per_audio_s + sum(one.chars for one in spoken)
    return (_PRIOR_AUDIO_S + sum(one.audio_s for one in spoken)) / chars


def drains_s(backlog_audio_s: Mapping[Tier, float], rate: Rate | None) -> dict[Tier, float | None]:
    """How long until each tier's backlog is done, with that of more urgent tiers before it.

    An approximation: deadlines may put a late job of a lower tier first. None: not known.
    """
    ahead_s = 0.0
    drains: dict[Tier, float | None] = {}
    for tier in Tier:  # most urgent first
        ahead_s += backlog_audio_s.get(tier, 0.0)
        if ahead_s <= 0:
            drains[tier] = 0.0
        else:
            drains[tier] = None if rate is None else ahead_s / rate.audio_s_per_s
    return drains
