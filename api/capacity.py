"""Whether there is room for a job: in its tier's promise, and in its tenant's quota. Pure.

The promise is kept by deadline: what counts is not all that waits, but what is due before the job
would be. A book due tomorrow does not keep today's news out, and the first job of an idle farm
is never refused. Without a measured rate nothing is predicted, and nobody refused for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import CapacityError, UsageError
from shared.ledger.demand import LiveJob
from shared.ledger.jobs import NewJob
from shared.scheduling.pace import steps_s
from shared.settings import Settings, TierSettings
from shared.tenants import Quota, TenantBacklog
from shared.tiers import Tier

MAX_RETRY_AFTER_S = 3_600.0
UNKNOWN_RETRY_AFTER_S = 30.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What a job asks of the farm: about so many seconds of audio, from so many characters.

    `steps_s` is what it takes beside the engines, however fast they are: its plan and last file.
    """

    tier: Tier
    audio_s: float
    chars: int
    steps_s: float = 0.0


def demand_of(new: NewJob) -> Demand:
    """What a job that is not yet written asks."""
    chars = len(new.text)
    last_chars = new.chapters[-1][2] - new.chapters[-1][1] if new.chapters else chars
    last_part_s = new.expected_audio_s * last_chars / chars if chars else 0.0
    steps = steps_s(chars, last_part_s, new.spec.format)
    return Demand(new.spec.tier, new.expected_audio_s, chars, steps)


@dataclass(frozen=True, slots=True)
class Load:
    """The farm as it was at `now_s`. `rate`: seconds of audio made in a second; None: not known."""

    jobs: Sequence[LiveJob]
    rate: float | None
    now_s: float


def check_tier(tier: Tier, allowed: frozenset[Tier]) -> None:
    """Raise UsageError when a key may not ask for this tier."""
    if tier not in allowed:
        choices = [one.value for one in Tier if one in allowed]
        raise UsageError(
            f"this key may not use the tier {tier.value}", code="tier-not-allowed", choices=choices
        )


def check_room(demand: Demand, load: Load, settings: Settings) -> None:
    """Raise CapacityError (`farm-full`) when the farm could not keep its promise to this job."""
    if demand.tier is Tier.BULK:
        _check_depth(demand, load, settings.bulk_backlog_audio_s)
    elif settings.refuse_when_full and load.rate is not None:
        _check_promise(demand, load, load.rate, settings)


def check_size(demand: Demand, quota: Quota) -> None:
    """Raise UsageError when a job is larger than its tenant's whole quota: no waiting helps it."""
    if quota.audio_s is not None and demand.audio_s > quota.audio_s:
        raise UsageError(
            f"the job has about {demand.audio_s:,.0f} s of audio; "
            f"this tenant may have {quota.audio_s:,.0f} s waiting",
            code="larger-than-quota",
            quota_audio_s=quota.audio_s,
        )


def check_quota(demand: Demand, backlog: TenantBacklog, quota: Quota, rate: float | None) -> None:
    """Raise CapacityError (`over-quota`) when the job would take its tenant past its quota.

    Of one that fits into it: `check_size` goes before.
    """
    if quota.audio_s is not None and backlog.audio_s + demand.audio_s > quota.audio_s:
        excess_s = backlog.audio_s + demand.audio_s - quota.audio_s
        raise _over_quota(
            f"about {backlog.audio_s:,.0f} s of this tenant's audio waits already; "
            f"{quota.audio_s:,.0f} s is the most",
            _time_for(excess_s, rate),
            quota_audio_s=quota.audio_s,
        )
    if quota.jobs is not None and backlog.jobs >= quota.jobs:
        one_job_s = backlog.audio_s / backlog.jobs if backlog.jobs else 0.0
        raise _over_quota(
            f"{backlog.jobs:,} jobs of this tenant are alive; {quota.jobs:,} is the most",
            _time_for(one_job_s, rate),
            quota_jobs=quota.jobs,
        )


def audio_due_before(demand: Demand, load: Load, tiers: dict[Tier, TierSettings]) -> float:
    """Seconds of audio that are due before this job would be, and so are made before it.

    Rush has slots of its own, so only rush comes before it. Bulk that is late already is held to
    its floor, and only what falls due meanwhile counts.
    """
    due_at = load.now_s + promise_s(demand.chars, tiers[demand.tier])
    audio_s = 0.0
    for job in load.jobs:
        if demand.tier is Tier.RUSH and job.tier is not Tier.RUSH:
            continue
        first_audio_s = tiers[job.tier].first_audio_s
        done = job.done
        if job.tier is Tier.BULK:
            done = max(done, _share_due(job, load.now_s, first_audio_s))
        audio_s += job.audio_s * max(0.0, _share_due(job, due_at, first_audio_s) - done)
    return audio_s


def promise_s(chars: int, target: TierSettings) -> float:
    """How long a tier may take for so many characters."""
    return max(target.floor_s, target.per_1000_chars_s * chars / 1000)


def _check_promise(demand: Demand, load: Load, rate: float, settings: Settings) -> None:
    target = settings.tiers[demand.tier]
    wait_s = audio_due_before(demand, load, settings.tiers) / rate
    may_take_s = promise_s(demand.chars, target)
    # What cannot be done in time even alone may still wait as long as its first audio may.
    own_s = demand.audio_s / rate + demand.steps_s
    may_wait_s = max(may_take_s - own_s, target.first_audio_s)
    if wait_s > may_wait_s:
        raise CapacityError(
            f"the farm is full: this job would wait about {wait_s:,.0f} s, "
            f"and the tier {demand.tier.value} promises it within {may_take_s:,.0f} s",
            code="farm-full",
            retry_after_s=_bounded(wait_s - may_wait_s),
            predicted_wait_s=round(wait_s, 1),
            promise_s=round(may_take_s, 1),
        )


def _check_depth(demand: Demand, load: Load, most_audio_s: float) -> None:
    waiting_s = sum(job.audio_s * (1 - job.done) for job in load.jobs if job.tier is Tier.BULK)
    if waiting_s > 0 and waiting_s + demand.audio_s > most_audio_s:
        raise CapacityError(
            f"the farm is full: about {waiting_s:,.0f} s of bulk audio waits; "
            f"{most_audio_s:,.0f} s is the most",
            code="farm-full",
            retry_after_s=_time_for(waiting_s + demand.audio_s - most_audio_s, load.rate),
            waiting_audio_s=round(waiting_s, 1),
        )


def _share_due(job: LiveJob, moment: float, first_audio_s: float) -> float:
    """The share of a job that is due by a moment: its segments are spread as planning does it."""
    if moment >= job.due_at:
        return 1.0
    first_at = min(job.created_at + first_audio_s, job.due_at)
    return max(0.0, (moment - first_at) / (job.due_at - first_at)) if moment > first_at else 0.0


def _over_quota(message: str, retry_after_s: float, **fields: object) -> CapacityError:
    return CapacityError(message, code="over-quota", retry_after_s=retry_after_s, **fields)


def _time_for(audio_s: float, rate: float | None) -> float:
    return UNKNOWN_RETRY_AFTER_S if rate is None else _bounded(audio_s / rate)


def _bounded(seconds: float) -> float:
    return min(max(seconds, 1.0), MAX_RETRY_AFTER_S)
