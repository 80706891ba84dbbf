"""Which of the waiting go well with a leader in one static batch: those of a like size. Pure.

A static batch takes as long as its longest member, so the others are padded to it. Knows no engine
and no tier; positions are those of the policy's own order, the most urgent first.
"""

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

_RATIO = 1.5  # sizes within this ratio waste little padding on each other
_SLACK_CHARS = 20  # nor do sizes that differ by no more than this
# Padding that a batch may hold, as a part of its own text. Where time goes by seats times longest,
# a batch then takes at most twice what its text needs; where by the longest alone, those left out
# come back in a batch that is short. With a node's depth of choice it costs a novel no batch.
MOST_PADDING = 1.0


class Sized(Protocol):
    """Something of a size that is due at a time."""

    @property
    def chars(self) -> int:
        """Its size."""
        ...

    @property
    def due_at(self) -> float:
        """When it should be done."""
        ...


T = TypeVar("T", bound=Sized)


def padding_chars(sizes: Collection[int]) -> int:
    """Characters of padding in a batch of these sizes."""
    return max(sizes, default=0) * len(sizes) - sum(sizes)


def alike(one: Sized, other: Sized) -> bool:
    """True when neither wastes much padding on the other."""
    small, large = sorted((one.chars, other.chars))
    return large <= small * _RATIO or large - small <= _SLACK_CHARS


def closest(lead: T, others: Sequence[T], room: int) -> list[T]:
    """The `room` others that share a batch with `lead` for the least padding; then the rest.

    Among equal choices the one with earlier positions wins. Both halves keep their order.
    """
    if room <= 0 or len(others) <= room:
        return sorted(others, key=lambda other: not alike(lead, other))
    by_size = sorted(enumerate(others), key=lambda pair: (pair[1].chars, pair[0]))
    runs = (by_size[first : first + room] for first in range(len(others) - room + 1))
    best = min(
        runs,
        key=lambda run: (
            padding_chars([lead.chars, *(other.chars for _, other in run)]),
            sum(position for position, _ in run),
        ),
    )
    chosen = {position for position, _ in best}
    return [
        *(other for position, other in enumerate(others) if position in chosen),
        *(other for position, other in enumerate(others) if position not in chosen),
    ]


def bounded(lead: T, batch: Sequence[T]) -> list[T]:
    """Of a batch, the most that go with `lead` within the bound on padding; in their order.

    Sizes within the slack of the longest are not counted as padded. Of equal choices the one with
    the shortest longest member wins.
    """
    best: list[T] = []
    for longest in sorted({member.chars for member in batch if member.chars >= lead.chars}):
        chosen = _within(lead, [m for m in batch if m.chars <= longest], longest)
        if len(chosen) > len(best):
            best = chosen
    taken = {id(member) for member in best}
    return [member for member in batch if id(member) in taken]


def _within(lead: T, members: Sequence[T], longest: int) -> list[T]:
    """As many of `members` as the bound allows beside `lead` and one of the longest."""

    def spare_chars(member: T) -> float:
        padding = max(0, longest - member.chars - _SLACK_CHARS)
        return MOST_PADDING * member.chars - padding

    by_size = sorted(members, key=lambda m: (m is not lead, -m.chars))
    if lead.chars < longest:  # the lead and the longest come first: neither may be left out
        chosen, rest = by_size[:2], by_size[2:]
    else:
        chosen, rest = by_size[:1], by_size[1:]
    spare = sum(spare_chars(member) for member in chosen)
    if spare < 0:
        return []
    for member in rest:
        spare += spare_chars(member)
        if spare < 0:
            break
        chosen.append(member)
    return chosen


def bounded_in_time(order: Sequence[T], batch: list[T], *, step_s: float, now: float) -> list[T]:
    """`batch`, led by its first, within the bound; the whole where somebody in `order` needs it.

    That is who would be in time after the whole, and late after the part. Batches, the part's own
    too, are taken to last `step_s` each; `now` is on the clock of `due_at`.
    """
    part = bounded(batch[0], batch)
    if step_s <= 0 or len(part) == len(batch):
        return part
    sooner, later = (_ends(order, first, len(batch)) for first in (batch, part))
    late = any(
        now + one * step_s <= member.due_at < now + other * step_s
        for member, one, other in zip(order, sooner, later, strict=True)
    )
    return batch if late else part


def _ends(order: Sequence[Sized], first: Collection[Sized], size: int) -> list[int]:
    """After how many batches each in `order` is over: `first`, then `size` at a time."""
    taken, passed, ends = {id(member) for member in first}, 0, []
    for member in order:
        if id(member) in taken:
            ends.append(1)
        else:
            ends.append(passed // size + 2)
            passed += 1
    return ends


def keeps_due_times(
    order: Sequence[Sized], batch: Collection[Sized], *, step_s: float, now: float
) -> bool:
    """True when nobody in `order` misses a due time only because `batch` goes first.

    Compares with batches of the same size in plain order, each `step_s` long; `now` is on the
    clock of `due_at`. Who would be late either way is nobody's reason.
    """
    size = len(batch)
    if size == 0 or step_s <= 0:
        return True
    taken = {id(member) for member in batch}
    passed = 0
    for position, member in enumerate(order):
        if id(member) in taken:
            continue
        in_order, here = position // size + 1, passed // size + 2
        passed += 1
        if now + in_order * step_s <= member.due_at < now + here * step_s:
            return False
    return True
