"""How deep the work lies in front of an engine. Pure; knows no queue.

Whatever is sent waits behind what is in front of it, so depth is what a newcomer waits at least. It
buys a choice of sentences of like sizes, which is worth something only to an engine that pads its
batches; any other needs no more than keeps its slots full while others encode and upload.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil

from shared.tiers import Tier

# A slot: one renders; one encodes and uploads, then waits for the next batch; and a few more, lest
# a batch go short. Each of them is in front of a newcomer.
_THREADS = 2.25
_THREADS_RUSH = 2  # its batches are small
_THREADS_PADDED = 4  # as many again, for the host to choose from when a batch ends
_THREADS_SINGLE = 3  # of a node with one slot, beside those that wait to be committed together


# Sentences a slot when no device waits: one renders, others are encoded and stored, for half as
# long as a batch takes.
_DEEP = 1.5


@dataclass(frozen=True, slots=True)
class Room:
    """How many sentences nodes have in hand when there is enough for all, and at most."""

    enough: float
    most: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes that are alive and alike: each holds `slots` sentences of an engine at once."""

    nodes: int
    slots: int
    pads: bool


def threads(slots: int, *, rush: bool, pads: bool, settling: int) -> int:
    """Sentences that a node's consumer takes at a time.

    On a single slot they end one by one, and up to `settling` wait to be committed together; those
    of a batch end together.
    """
    if slots == 1:
        return _THREADS_SINGLE if rush else _THREADS_SINGLE + settling
    if rush:
        return slots * _THREADS_RUSH
    return ceil(slots * (_THREADS_PADDED if pads else _THREADS))


def room(fleets: Collection[Fleet], *, settling: int, max_batch: int) -> Room:
    """For sentences of which a batch takes so many; all consumers of these nodes together."""
    most = sum(
        fleet.nodes * threads(fleet.slots, rush=rush, pads=fleet.pads, settling=settling)
        for fleet in fleets
        for rush in (True, False)
    )
    filled = sum(fleet.nodes * min(fleet.slots, max_batch) for fleet in fleets)
    return Room(_DEEP * filled, most)


def window(
    tiers: Collection[Tier],
    fleets: Collection[Fleet],
    *,
    factor: float,
    padded_factor: float,
    settling: int,
    least: int,
) -> int:
    """Segments of a pool that the queues hold at a time, those in work included.

    `factor` sentences for each slot, `padded_factor` where batches are padded; rush, which has no
    choice to make, as many as its consumers take. Never fewer than the consumers take.
    """
    rush = tuple(tiers) == (Tier.RUSH,)
    wanted = 0.0
    for fleet in fleets:
        taken = threads(fleet.slots, rush=rush, pads=fleet.pads, settling=settling)
        each = fleet.slots * (padded_factor if fleet.pads else factor)
        wanted += fleet.nodes * (taken if rush else max(taken, each))
    return max(least, ceil(wanted))
