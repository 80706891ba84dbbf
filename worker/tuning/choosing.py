"""From figures to tiers: the largest batches with which every tier keeps its target. Pure.

A sentence that has just missed a batch waits for that one, which may be the largest of any tier,
and then for its own. Both have to fit into a share of the tier's first-audio target; the rest is
for splitting, queue, encoding and upload. So one tier's batch costs the others time, and all are
chosen together: first the largest that any tier may run without taking another's target from it,
then for each tier its own. A target that no batches keep still counts for what is left of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.settings import TierSettings
from shared.tiers import Tier
from worker.tuning.figures import Figures
from worker.tuning.worth import worthwhile

TARGET_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Choice:
    """A tier's batch, why no larger one, and the wait it means at worst.

    `late_s` is by how much that wait exceeds what the tier allows, 0 when it does not; only then is
    there something that `helps`.
    """

    tier: Tier
    max_batch: int
    wait_s: float
    allowed_s: float
    why: str
    late_s: float = 0.0
    helps: str = ""

    @property
    def keeps_target(self) -> bool:
        """True when the wait at worst fits into the tier's share of its target."""
        return self.late_s == 0


@dataclass(frozen=True, slots=True)
class _Need:
    """What one tier can bear.

    `bound_s` is what its wait is kept within: what the tier allows; where the smallest batches take
    longer, the whole target; where they take longer than that, nothing binds.
    """

    tier: Tier
    settings: TierSettings
    batch_s: Mapping[int, float]

    @property
    def least(self) -> int:
        return min(self.batch_s)

    @property
    def allowed_s(self) -> float:
        return self.settings.first_audio_s * TARGET_SHARE

    @property
    def lost(self) -> bool:
        return self.wait_s(self.least, self.least) > self.allowed_s

    @property
    def bound_s(self) -> float:
        if not self.lost:
            return self.allowed_s
        soonest_s = self.wait_s(self.least, self.least)
        return self.settings.first_audio_s if soonest_s <= self.settings.first_audio_s else math.inf

    def wait_s(self, size: int, running: int) -> float:
        """The wait at worst of a sentence in a batch of `size`, behind one of `running`."""
        filling_s = self.settings.max_wait_s if size > 1 else 0.0
        return max(self.batch_s[running], filling_s) + self.batch_s[size]

    def own(self, running: int) -> int | None:
        """Its largest batch behind one of `running`; None when that is longer than it bears."""
        sizes = [self.least] if self.lost else [s for s in self.batch_s if s <= running]
        return max((s for s in sizes if self.wait_s(s, running) <= self.bound_s), default=None)


def choose(figures: Sequence[Figures], tiers: Mapping[Tier, TierSettings]) -> list[Choice]:
    """A choice for each tier. Raises FatalError when not even the smallest batch was spoken."""
    batch_s, limit = worthwhile(figures)
    needs = [_Need(tier, tiers[tier], batch_s) for tier in Tier if tier in tiers]
    sizes = _together(needs, sorted(batch_s))
    running = max(sizes.values(), default=min(batch_s))
    blamed = _blamed(needs, running)
    return [_choice(need, sizes[need.tier], running, blamed, limit) for need in needs]


def tiers_with(
    engine: str, choices: Sequence[Choice], tiers: Mapping[Tier, TierSettings]
) -> dict[str, dict[str, object]]:
    """The tiers with the batches chosen for `engine`; what they say of other engines stays.

    In the form of `VOXFARM_TIERS` and `tiers.json`.
    """
    sizes = {choice.tier: {engine: choice.max_batch} for choice in choices}
    return {
        tier.value: settings.model_copy(
            update={"max_batch_by_engine": settings.max_batch_by_engine | sizes.get(tier, {})}
        ).model_dump(mode="json")
        for tier, settings in tiers.items()
    }


def _together(needs: Sequence[_Need], sizes: Sequence[int]) -> dict[Tier, int]:
    for running in reversed(sizes):
        own = {need.tier: size for need in needs if (size := need.own(running)) is not None}
        if len(own) == len(needs) and running in own.values():
            return own
    return {need.tier: need.least for need in needs}


def _blamed(needs: Sequence[_Need], running: int) -> tuple[_Need, int] | None:
    """Who cannot bear the next larger batch of any tier, and that batch."""
    for size in sorted(needs[0].batch_s if needs else ()):
        if size > running:
            return next(((need, size) for need in needs if need.own(size) is None), None)
    return None


def _choice(
    need: _Need, size: int, running: int, blamed: tuple[_Need, int] | None, limit: str
) -> Choice:
    wait_s = need.wait_s(size, running)
    late_s = max(0.0, wait_s - need.allowed_s)
    why, helps = "a larger one would wait longer than the tier allows", ""
    if need.lost:
        soonest_s = need.wait_s(need.least, need.least)
        why = f"{late_s:.2f} s more than allowed"
        if running > need.least:
            why += f", {soonest_s - need.allowed_s:.2f} s more with every tier at {need.least}"
        helps = f"a faster engine or device, or a first_audio_s of {_rounded_up(wait_s)}"
    elif size == max(need.batch_s):
        why = limit
    elif size == running and blamed is not None and blamed[0] is not need:
        other, larger = blamed
        why = f"beside batches of {larger} {other.tier} would wait "
        why += f"{other.wait_s(other.least, larger):.2f} s of {other.bound_s:.2f}"
    return Choice(need.tier, size, wait_s, need.allowed_s, why, late_s, helps)


def _rounded_up(wait_s: float) -> str:
    return f"{math.ceil(10 * wait_s / TARGET_SHARE) / 10:.1f} s"
