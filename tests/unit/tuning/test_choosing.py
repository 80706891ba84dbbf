"""Which batch a tier gets, and why no larger one."""

import pytest

from shared.settings import DEFAULT_TIERS, Settings
from shared.tiers import Tier
from worker.tuning.choosing import Choice, choose, tier_file
from worker.tuning.figures import Figures


def figures(batch_s: dict[int, float], **changes: object) -> list[Figures]:
    return [
        Figures(
            batch=size, chars=chars, batch_s=wall_s * chars / 240, audio_s=size * chars / 15
        ).model_copy(update=changes)
        for chars in (40, 240)
        for size, wall_s in batch_s.items()
    ]


def chosen(measured: list[Figures]) -> dict[Tier, Choice]:
    return {choice.tier: choice for choice in choose(measured, DEFAULT_TIERS)}


def test_a_device_that_gains_by_batching_runs_full_batches() -> None:
    tiers = chosen(figures({1: 0.09, 2: 0.13, 4: 0.21, 8: 0.37}))
    assert {tier: choice.max_batch for tier, choice in tiers.items()} == dict.fromkeys(Tier, 8)
    assert tiers[Tier.RUSH].wait_s == pytest.approx(0.74)


def test_rush_gets_the_largest_batch_that_keeps_its_target_beside_full_ones() -> None:
    tiers = chosen(figures({1: 0.2, 2: 0.3, 4: 0.39, 8: 0.6}))
    assert tiers[Tier.RUSH].max_batch == 4  # 0.6 for the one that runs, 0.39 of its own
    assert "longer than the tier allows" in tiers[Tier.RUSH].why
    assert tiers[Tier.BULK].max_batch == 8


def test_a_batch_that_is_no_faster_is_not_worth_its_latency() -> None:
    tiers = chosen(figures({1: 0.1, 2: 0.2, 4: 0.4, 8: 0.8}))
    assert {choice.max_batch for choice in tiers.values()} == {1}
    assert tiers[Tier.BULK].why == "a larger one is no faster"


def test_quality_comes_before_speed() -> None:
    measured = figures({1: 0.09, 2: 0.13, 4: 0.21})
    measured += figures({8: 0.37}, difference_db=-40.0)
    tiers = chosen(measured)
    assert tiers[Tier.BULK].max_batch == 4
    assert "sound different" in tiers[Tier.BULK].why


def test_a_difference_that_nobody_hears_is_none() -> None:
    measured = figures({1: 0.09}) + figures({2: 0.13}, difference_db=-95.0)
    assert chosen(measured)[Tier.BULK].max_batch == 2


def test_a_size_that_failed_is_not_used() -> None:
    measured = figures({1: 0.09, 2: 0.13}) + figures({4: 0.0}, fault="MemoryError")
    assert chosen(measured)[Tier.BULK].max_batch == 2
    assert "MemoryError" in chosen(measured)[Tier.BULK].why


def test_an_engine_too_slow_for_a_tier_is_told_so() -> None:
    rush = chosen(figures({1: 3.0, 2: 4.0}))[Tier.RUSH]
    assert (rush.max_batch, rush.keeps_target) == (1, False)


def test_an_engine_that_speaks_nothing_gives_no_tiers() -> None:
    with pytest.raises(ValueError, match="MemoryError"):
        choose(figures({1: 0.0}, fault="MemoryError"), DEFAULT_TIERS)


def test_the_file_is_what_settings_accept_and_changes_batches_only() -> None:
    tiers = tier_file(choose(figures({1: 0.1, 2: 0.15}), DEFAULT_TIERS), DEFAULT_TIERS)
    accepted = Settings(tiers=tiers).tiers  # type: ignore[arg-type]
    assert {tier: settings.max_batch for tier, settings in accepted.items()} == dict.fromkeys(
        Tier, 2
    )
    for tier, settings in accepted.items():
        assert settings.model_copy(update={"max_batch": 1}) == DEFAULT_TIERS[tier].model_copy(
            update={"max_batch": 1}
        )
