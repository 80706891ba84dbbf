"""What is waiting, in seconds of audio, and how long until it is done. Pure: figures in and out.

Everything is measured in the audio that engines make, since tiers, voices and lengths differ in
characters but share the same devices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from shared.scheduling.depth import Room
from shared.scheduling.together import batch_ends
from shared.tiers import Tier

STRETCH = 32  # segments, or more, that a rate is read from: some full batches
FEWEST = 8
LATELY_S = 60.0
ENOUGH_LATELY = 4  # stretches of the last minute; with fewer, NEWEST older ones are looked at too
NEWEST = 8
FULL = 0.75  # of the fullest stretch: below, one says less of what the devices can do
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
    """What the farm makes while it has work: seconds of audio per second.

    `is_bound`: it never had enough to do, so that this is only the most that it may be able to.
    """

    audio_s_per_s: float
    segments: int  # how many it was read from
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A run of segments: its rate if the devices had enough to do, and whether they had, 0 to 1."""

    done_at: float
    audio_s_per_s: float
    full: float


def rate_of(
    samples: Sequence[Sequence[Spoken]], *, now_s: float, rooms: Sequence[Room]
) -> Rate | None:
    """The rate while there was enough to do, whatever quiet times lay between; None: not known.

    `samples` holds each tier's last segments, `rooms` how many of them the nodes alive have in
    hand, for their batches differ in size. They are looked at a stretch at a time, and only the
    fullest stretches count: a device that is given a sentence at a time takes nearly as long for it
    as for a batch. Of the newest of them the better quarter counts, from its lower end. Too few
    segments show nothing, and with no node alive there is no rate.
    """
    spoken = _together(samples, rooms)
    stretches = [stretch for run in _runs(spoken) if (stretch := _stretch(run))]
    if not stretches:
        return None
    fullest = max(stretch.full for stretch in stretches)
    counted = [stretch for stretch in stretches if stretch.full >= FULL * fullest]
    lately = [stretch for stretch in counted if stretch.done_at >= now_s - LATELY_S]
    counted = lately if len(lately) >= ENOUGH_LATELY else counted[-NEWEST:]
    rates = sorted(stretch.audio_s_per_s for stretch in counted)
    return Rate(rates[len(rates) * 3 // 4], len(spoken), is_bound=fullest < FULL)


def _runs(spoken: Sequence[tuple[Spoken, Room]]) -> Iterator[Sequence[tuple[Spoken, Room]]]:
    """The history in stretches, each from the end of a batch to that of another.

    What ended all at once is a stretch too, where there is no other.
    """
    ends = batch_ends([one.done_at for one, _ in spoken])
    begin, found = next(iter(ends), 0), False
    for end in ends:
        if end - begin >= (FEWEST if end == len(spoken) - 1 else STRETCH):
            yield spoken[begin : end + 1]
            begin, found = end, True
    if not found and len(spoken) > FEWEST:
        yield spoken


def _stretch(run: Sequence[tuple[Spoken, Room]]) -> _Stretch | None:
    """From the first completion to the last, without idle time; None: it shows nothing.

    Time is idle when no segment was claimed. What is done in a second is what one segment in hand
    comes to, times those in hand (Little's law). Had there been more at once than there were, each
    would have taken no less time: so with fewer than `room.enough` the rate is the most that the
    devices can do. With more than `room.most` they ended too close together to be timed, or nodes
    have gone since.
    """
    spoken = [one for one, _ in run]
    room = Room(fmean(room.enough for _, room in run), max(room.most for _, room in run))
    busy_s, claimed_at = 0.0, float("inf")
    for before, one in reversed([*pairwise(spoken)]):
        claimed_at = min(claimed_at, one.claimed_at)
        busy_s += max(0.0, one.done_at - max(before.done_at, claimed_at))
    counted = spoken[1:]  # the first one only begins the time
    in_hand_s = sum(max(0.0, one.done_at - one.claimed_at) for one in counted)
    audio_s = sum(one.audio_s for one in counted)
    if min(in_hand_s, audio_s, room.enough) <= 0:
        return None
    at_once = in_hand_s / busy_s if busy_s > 0 else room.most
    counts_as = min(max(at_once, room.enough), room.most)
    rate = audio_s / in_hand_s * counts_as
    return _Stretch(spoken[-1].done_at, rate, min(1.0, at_once / room.enough))


def _together(
    samples: Sequence[Sequence[Spoken]], rooms: Sequence[Room]
) -> list[tuple[Spoken, Room]]:
    """All samples as one, by time of completion, from where all of them are complete."""
    full = max((len(sample) for sample in samples), default=0)
    since = max(
        (min(one.done_at for one in sample) for sample in samples if len(sample) == full > 0),
        default=0.0,
    )
    merged = [
        (one, room)
        for sample, room in zip(samples, rooms, strict=True)
        for one in sample
        if one.done_at >= since
    ]
    return sorted(merged, key=lambda pair: pair[0].done_at)


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
