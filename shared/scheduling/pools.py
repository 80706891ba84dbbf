"""The pools: which tiers share a window, and how. Knows no job and no database.

Rush has a pool to itself: its window and its consumers are reserved, so bulk never stands in its
way. It does not overflow into the other pool; it has no need to, since every host takes waiting
rush work first and may fill all of its slots with it.
"""

from dataclasses import dataclass

from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class Pool:
    """Tiers with one window, and the shares in which its turns are given. Raises ValueError.

    `fair_share` of a tier's audio goes to whoever has been served least, the rest to the earliest
    deadline. `late_bulk_share` is the least share of the audio sent that past-due bulk gets while
    any waits. `forgiven_beyond_s`: no tenant or job is held to owe more than this, in audio
    seconds per weight; nor is past-due bulk held to be owed more.
    """

    name: str
    tiers: tuple[Tier, ...]
    fair_share: float = 0.5
    late_bulk_share: float = 0.1
    forgiven_beyond_s: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.fair_share <= 1:
            raise ValueError("fair_share must lie above 0 and not above 1")
        if not 0 <= self.late_bulk_share < 1:
            raise ValueError("late_bulk_share must lie between 0 and 1")
        if not 0 <= self.forgiven_beyond_s < float("inf"):
            raise ValueError("forgiven_beyond_s must be a number of seconds")


# Deadlines of rush work are all alike and close: simulated, a spike is kept best by fairness alone.
RUSH_POOL = Pool("rush", (Tier.RUSH,), fair_share=1.0)
SHARED_POOL = Pool("shared", (Tier.STANDARD, Tier.BULK))
POOLS = (RUSH_POOL, SHARED_POOL)


def pool_of(tier: Tier) -> Pool:
    """The pool that a tier belongs to."""
    return RUSH_POOL if tier is Tier.RUSH else SHARED_POOL
