"""Which of the waiting go well with a leader in one static batch: those of a like size. Pure.

A static batch takes as long as its longest member, so the others are padded to it. Knows no engine
and no tier; positions are those of the policy's own order, the most urgent first.
"""

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

_RATIO = 1.5  # sizes within this ratio waste little padding on each other
_SLACK_CHARS = 20  # nor do sizes that differ by no more than this


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
