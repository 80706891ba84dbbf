"""What waits, as the policy sees it, and what the policy answers. Plain data; knows no rule.

A turn (`turn_s`) is a fairness tag: audio seconds per unit of weight, on the clock of the group in
which its owner competes. Whoever has the lowest has been served the least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class WaitingSegment:
    """A segment that waits. `audio_s` is how long its audio is expected to be."""

    index: int
    due_at: float
    audio_s: float

    def __post_init__(self) -> None:
        if not 0 < self.audio_s < inf:
            raise ValueError("audio_s must be above 0 and finite: it is the price of a turn")


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job and the first of its waiting segments, at least one, ordered by (due_at, index).

    `due_at` is when the job should be complete. `more` says that others wait behind `segments`.
    A job of twice the weight gets twice the share, among its tenant's jobs and for its tenant.
    """

    id: str
    tenant: str
    due_at: float
    segments: Sequence[WaitingSegment]
    more: bool = False
    weight: float = 1.0
    turn_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.weight < inf:
            raise ValueError("weight must be above 0 and finite")
        if not self.segments:
            raise ValueError("a job without waiting segments does not wait")


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A tenant in one tier: its turn, and the clock on which its own jobs have theirs."""

    turn_s: float = 0.0
    clock_s: float = 0.0


NEW_TENANT = TenantShare()


@dataclass(frozen=True, slots=True)
class Rest:
    """What waits and was left out of an offer: nothing of it lies below these marks.

    `deadline_at` and `head_due_at` bound the jobs left out (see `contest.deadline`; the head is a
    job's first waiting segment), `tenant_turn_s` the tenants of whom no job is listed by turn.
    `job_turn_s` is by tenant: one that is absent has all of its jobs in the offer; one of whom only
    urgent jobs are there has `-inf`.
    """

    deadline_at: float = inf
    head_due_at: float = inf
    tenant_turn_s: float = inf
    job_turn_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TierOffer:
    """What a tier has waiting: the most urgent jobs, and those with the lowest turns.

    `tenants` holds the shares of the jobs' tenants; one that is absent counts as new.
    """

    tier: Tier
    jobs: Sequence[WaitingJob]
    tenants: Mapping[str, TenantShare] = field(default_factory=dict)
    rest: Rest = field(default_factory=Rest)


@dataclass(frozen=True, slots=True)
class TierState:
    """A tier's clock of tenants' turns, and `fair_s`: from zero up, its next turn is a fair one."""

    clock_s: float = 0.0
    fair_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PoolState:
    """What a pool remembers from one choice to the next, in audio seconds.

    `owed_s` above zero is owed to past-due bulk. `elsewhere_s` is how much of the audio sent by
    the other pools has been counted towards that.
    """

    tiers: Mapping[Tier, TierState] = field(default_factory=dict)
    owed_s: float = 0.0
    elsewhere_s: float = 0.0


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

    `tenants` is by (tier, tenant); `jobs` holds the new `turn_s` by job id. `short`: there is room
    left, and more may wait than was offered; apply this choice and offer again.
    """

    picks: tuple[Pick, ...]
    pool: PoolState
    tenants: Mapping[tuple[Tier, str], TenantShare]
    jobs: Mapping[str, float]
    short: bool
