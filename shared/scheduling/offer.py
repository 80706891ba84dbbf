"""What waits, as the policy sees it, and what it answers. Plain data; knows no rule and no SQL.

`turn_s` is a fairness tag: audio seconds per unit of weight, on the clock of the group that its
owner shares with others. Who has the lowest has been served the least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class WaitingSegment:
    """A segment that waits. `audio_s` is the length its audio is expected to have."""

    index: int
    due_at: float
    audio_s: float


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job and the first of its waiting segments, at least one, ordered by (due_at, index).

    `more` says that others wait behind them. A job of twice the weight gets twice the share.
    """

    id: str
    tenant: str
    due_at: float
    segments: Sequence[WaitingSegment]
    more: bool = False
    weight: float = 1.0
    turn_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TenantShare:
    """What a tenant has had of a tier (`turn_s`), and the clock that its own jobs share."""

    turn_s: float = 0.0
    clock_s: float = 0.0


NEW_TENANT = TenantShare()


@dataclass(frozen=True, slots=True)
class Rest:
    """What waits but was left out of an offer: nothing of it comes before these marks.

    `job_turn_s` is by tenant: a tenant that is absent has all of its jobs in the offer; one whose
    jobs are there for their deadlines only has `-inf`.
    """

    due_at: float = inf
    head_due_at: float = inf
    tenant_turn_s: float = inf
    job_turn_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TierOffer:
    """What a tier has waiting: the jobs due first, and those with the lowest turns.

    `tenants` holds the share of every tenant that has a row; others count as new.
    """

    tier: Tier
    jobs: Sequence[WaitingJob]
    tenants: Mapping[str, TenantShare] = field(default_factory=dict)
    clock_s: float = 0.0
    fair_s: float = 0.0
    rest: Rest = field(default_factory=Rest)


@dataclass(frozen=True, slots=True)
class PoolState:
    """What a pool remembers from one choice to the next, in audio seconds.

    `fair_s` above zero: the next turn is a fair one. `owed_s` above zero: past-due bulk is owed
    audio. `rush_seen_s`: how much of `rush_served_s` has been counted for that.
    """

    fair_s: float = 0.0
    owed_s: float = 0.0
    rush_seen_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pick:
    """A segment to send now."""

    tier: Tier
    job_id: str
    index: int
    audio_s: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Segments to send, in order, and every row that changed with them.

    `tenants` is by (tier, tenant), `jobs` by job id: their new `turn_s`. `short` says that room
    was left because what comes next was not in the offer: apply this choice and offer again.
    """

    picks: tuple[Pick, ...]
    pool: PoolState
    clocks_s: Mapping[Tier, float]
    tenants: Mapping[tuple[Tier, str], TenantShare]
    jobs: Mapping[str, float]
    short: bool
