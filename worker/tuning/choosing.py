"""From figures to tiers: the largest batch that keeps a tier's target and the quality. Pure.

A sentence that has just missed a batch waits for that one, which may be the largest of any tier,
and then for its own. Both have to fit into a share of the tier's first-audio target; the rest is
for splitting, queue, encoding and upload.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.settings import TierSettings
from shared.tiers import Tier
from worker.tuning.figures import Figures

TARGET_SHARE = 0.5
QUALITY_DB = -60.0  # a difference below this is not to be heard under speech
_WORTH = 1.02  # a larger batch must be faster by this, or it only adds latency


@dataclass(frozen=True, slots=True)
class Choice:
    """A tier's batch, why no larger one, and the wait it means at worst.

    `keeps_target` is False when even a single sentence takes longer than the tier allows.
    """

    tier: Tier
    max_batch: int
    wait_s: float
    allowed_s: float
    why: str
    keeps_target: bool


def choose(figures: Sequence[Figures], tiers: Mapping[Tier, TierSettings]) -> list[Choice]:
    """A choice for each tier. Raises ValueError when no single sentence was spoken."""
    slowest = _slowest(figures)
    usable, limit = _usable(figures, slowest)
    if not usable:
        raise ValueError(f"the engine speaks no sentence: {limit}")
    running_s = slowest[usable[-1]]
    return [
        _choice(tier, settings, usable=usable, slowest=slowest, running_s=running_s, limit=limit)
        for tier, settings in tiers.items()
    ]


def tier_file(
    choices: Sequence[Choice], tiers: Mapping[Tier, TierSettings]
) -> dict[str, dict[str, float]]:
    """The tiers with the batches chosen, as `VOXFARM_TIERS` and `tiers.json` have them."""
    return {
        choice.tier.value: tiers[choice.tier]
        .model_copy(update={"max_batch": choice.max_batch})
        .model_dump(mode="json")
        for choice in choices
    }


def _choice(
    tier: Tier,
    settings: TierSettings,
    *,
    usable: Sequence[int],
    slowest: Mapping[int, float],
    running_s: float,
    limit: str,
) -> Choice:
    allowed_s = settings.first_audio_s * TARGET_SHARE
    fitting = [size for size in usable if running_s + slowest[size] <= allowed_s]
    size = fitting[-1] if fitting else usable[0]
    why = limit if size == usable[-1] else "a larger one would wait longer than the tier allows"
    return Choice(tier, size, running_s + slowest[size], allowed_s, why, bool(fitting))


def _slowest(figures: Sequence[Figures]) -> dict[int, float]:
    """The longest time of each batch size over all lengths."""
    times: dict[int, float] = {}
    for each in figures:
        if not each.fault:
            times[each.batch] = max(times.get(each.batch, 0.0), each.batch_s)
    return times


def _usable(figures: Sequence[Figures], slowest: Mapping[int, float]) -> tuple[list[int], str]:
    """Sizes that are worth running, ascending, and why the next one is not."""
    usable = list[int]()
    best = 0.0
    for size in sorted({each.batch for each in figures}):
        mine = [each for each in figures if each.batch == size]
        if fault := next((each.fault for each in mine if each.fault), ""):
            return usable, f"the engine fails at {size}: {fault}"
        if any(each.difference_db is not None and each.difference_db > QUALITY_DB for each in mine):
            return usable, f"at {size} sentences sound different from alone"
        rate = size / slowest[size]
        if rate >= best * _WORTH:
            usable.append(size)
            best = rate
    largest = max(slowest)
    if usable[-1] == largest:
        return usable, "the largest measured"
    return usable, "a larger one is no faster"
