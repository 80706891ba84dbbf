"""How long things will take: a tier's backlog, a job, a request that is not yet accepted. Pure.

Rates are audio seconds per wall second (xrt). What a farm can do is measured over the time in
which it was busy, so that neither idle hours nor a model's loading lower it. A fluid model: work
flows in a continuous stream, in the shares that the policy gives. `inf` says "never, at this rate".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, inf

from shared.scheduling.pools import SHARED_POOL
from shared.tiers import Tier

LONGEST_RETRY_S = 3_600  # nobody is sent away for longer without another look


@dataclass(frozen=True, slots=True)
class TierLoad:
    """A tier's audio seconds that wait or are under way, and what keeps coming, as xrt.

    `late_s` is the part of the backlog that is past due; it matters for bulk only.
    """

    backlog_s: float = 0.0
    arriving_xrt: float = 0.0
    late_s: float = 0.0


_NOTHING = TierLoad()


def drain_s(
    tier: Tier,
    loads: Mapping[Tier, TierLoad],
    farm_xrt: float,
    *,
    late_bulk_share: float = SHARED_POOL.late_bulk_share,
) -> float:
    """Wall seconds until what waits in a tier now is rendered, with what goes before it.

    Rush goes before all, standard before bulk; past-due bulk keeps its share beside both. What
    has priority is expected to keep coming at its present rate.
    """
    rush, standard, bulk = (loads.get(t, _NOTHING) for t in Tier)
    if tier is Tier.BULK:
        left_xrt = farm_xrt - rush.arriving_xrt - standard.arriving_xrt
        after_all = _flow_s(rush.backlog_s + standard.backlog_s + bulk.backlog_s, left_xrt)
        return min(after_all, _flow_s(bulk.backlog_s, late_bulk_share * farm_xrt))
    ahead_s, left_xrt = loads.get(tier, _NOTHING).backlog_s, farm_xrt
    if tier is Tier.STANDARD:
        ahead_s += rush.backlog_s
        left_xrt -= rush.arriving_xrt
    # Late bulk takes its share for as long as there is any, and no more than there is.
    shared = _flow_s(ahead_s, left_xrt - late_bulk_share * farm_xrt)
    return min(shared, _flow_s(ahead_s + bulk.late_s, left_xrt))


def fair_finish_s(audio_s: float, others_s: Iterable[float], tier_xrt: float) -> float:
    """Wall seconds until a tenant's `audio_s` is rendered beside other tenants' backlogs.

    Everyone flows at the same rate until done, so each of the others delays it by what it has,
    but by no more than the tenant has itself.
    """
    return _flow_s(audio_s + sum(min(audio_s, other_s) for other_s in others_s), tier_xrt)


def job_eta_s(remaining_s: float, own_xrt: float | None, otherwise_s: float) -> float:
    """Wall seconds until a job's remaining audio is rendered.

    By the rate at which it moved lately; before it has one (None), what was predicted otherwise.
    """
    return otherwise_s if own_xrt is None else _flow_s(remaining_s, own_xrt)


def busy_xrt(renderings: Iterable[tuple[float, float, float]]) -> float | None:
    """What a farm, or a job, does while it has work: audio over the time covered by renderings.

    A rendering is (begun, done, audio seconds). None when they cover no time at all.
    """
    covered_s = audio_s = 0.0
    until = -inf
    for begun, done, seconds in sorted(renderings):
        covered_s += max(0.0, done - max(begun, until))
        until = max(until, done)
        audio_s += seconds
    return audio_s / covered_s if covered_s > 0 else None


def expected_audio_s(
    chars: int, chars_per_audio_s: float, *, speed: float = 1.0, pauses_s: float = 0.0
) -> float:
    """How long the audio of a text will be, its pauses included."""
    return chars / (chars_per_audio_s * speed) + pauses_s


def retry_after_s(predicted_s: float, promise_s: float) -> int:
    """Whole seconds after which a prediction will have come down to the promise; at least 1."""
    over_s = predicted_s - promise_s
    return LONGEST_RETRY_S if over_s >= LONGEST_RETRY_S else max(1, ceil(over_s))


def _flow_s(audio_s: float, xrt: float) -> float:
    if audio_s <= 0:
        return 0.0
    return audio_s / xrt if xrt > 0 else inf
