"""What rush has left for the others lately, and whether they are owed a turn. Pure; knows no batch.

They are owed one only while some of them are late, that is past due. Patience alone, a number of
seconds, would leave them less the faster the device is; a share of the work is the same on any.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from shared.scheduling.pools import SHARED_POOL
from shared.tiers import Tier

# The pool's floor is of late bulk alone; what lies between it in the line goes by this share too.
LATE_SHARE = 1.25 * SHARED_POOL.late_bulk_share
_FADES = 0.99  # what was given counts so much less with each batch: some hundred are remembered


class Asked(Protocol):
    """Something that waits to be spoken."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def tier(self) -> str:
        """Its tier's name."""
        ...

    @property
    def due_at(self) -> float:
        """When it should be done."""
        ...

    @property
    def chars(self) -> int:
        """Its size, which the device's time and its audio go by."""
        ...


def is_late(asked: Asked, due_clock_s: float) -> bool:
    """Whether it is past due and has nobody to hurry it; `due_clock_s` is on `due_at`'s clock."""
    return asked.tier != Tier.RUSH and asked.due_at < due_clock_s


@dataclass(frozen=True, slots=True)
class Given:
    """Characters admitted while late work waited: of all but rush, and of all; fading."""

    others_chars: float = 0.0
    all_chars: float = 0.0

    def owes(self, share: float) -> bool:
        """Whether the others have had less than `share`."""
        return self.others_chars < share * self.all_chars

    def after(
        self, waiting: Iterable[Asked], admitted: Collection[str], *, due_clock_s: float
    ) -> "Given":
        """The account when those `admitted` of the `waiting` have been given their turn.

        Nothing changes unless late work waited: only then is anybody owed anything.
        """
        others_chars, all_chars, late_waited = 0, 0, False
        for asked in waiting:
            late_waited |= is_late(asked, due_clock_s)
            if asked.id in admitted:
                all_chars += asked.chars
                others_chars += asked.chars * (asked.tier != Tier.RUSH)
        if not late_waited or not admitted:
            return self
        return Given(
            _FADES * self.others_chars + others_chars,
            _FADES * self.all_chars + all_chars,
        )
