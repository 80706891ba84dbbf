"""Which batch each tier gets, all of them together, and why no larger one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import FatalError
from shared.settings import DEFAULT_TIERS, Settings, TierSettings
from shared.tiers import Tier
from worker.tuning.choosing import TARGET_SHARE, Choice, choose, tiers_with
from worker.tuning.figures import Figures


def figures(batch_s: dict[int, float], **changes: object) -> list[Figures]:
    return [
        Figures(
            batch=size, chars=chars, batch_s=wall_s * chars / 240, audio_s=size * chars / 15
        ).model_copy(update=changes)
        for chars in (40, 240)
        for size, wall_s in batch_s.items()
    ]


def device(base_s: float, per_item_s: float) -> list[Figures]:
    return figures({size: base_s + per_item_s * size for size in (1, 2, 4, 8)})


def chosen(measured: list[Figures]) -> dict[Tier, Choice]:
    return {choice.tier: choice for choice in choose(measured, DEFAULT_TIERS)}


def sizes(measured: list[Figures]) -> dict[Tier, int]:
    return {tier: choice.max_batch for tier, choice in chosen(measured).items()}


def test_a_device_that_gains_by_batching_runs_full_batches() -> None:
    tiers = chosen(figures({1: 0.09, 2: 0.13, 4: 0.21, 8: 0.37}))
    assert {tier: choice.max_batch for tier, choice in tiers.items()} == dict.fromkeys(Tier, 8)
    assert tiers[Tier.RUSH].wait_s == pytest.approx(0.74)


def test_rush_gets_the_largest_batch_that_keeps_its_target_beside_full_ones() -> None:
    tiers = chosen(figures({1: 0.2, 2: 0.3, 4: 0.39, 8: 0.6}))
    assert tiers[Tier.RUSH].max_batch == 4  # 0.6 for the one that runs, 0.39 of its own
    assert "longer than the tier allows" in tiers[Tier.RUSH].why
    assert tiers[Tier.BULK].max_batch == 8


def test_bulk_gives_way_as_far_as_rush_needs() -> None:
    tiers = chosen(device(0.3, 0.09))
    assert {tier: choice.max_batch for tier, choice in tiers.items()} == dict.fromkeys(Tier, 2)
    rush = tiers[Tier.RUSH]
    assert (rush.wait_s, rush.keeps_target, rush.helps) == (pytest.approx(0.96), True, "")
    assert tiers[Tier.BULK].why == "beside batches of 4 rush would wait 1.05 s of 1.00"


def test_a_target_that_no_batches_keep_is_told_with_what_would_help() -> None:
    tiers = chosen(device(0.5, 0.05))  # two single sentences: 1.10 s of the 1.00 s
    rush = tiers[Tier.RUSH]
    assert (rush.max_batch, rush.keeps_target) == (1, False)
    assert tiers[Tier.BULK].max_batch == 8  # 0.9 + 0.55 is still within the whole target of 2 s
    assert rush.late_s == pytest.approx(0.45)
    assert rush.why == "0.45 s more than allowed, 0.10 s more with every tier at 1"
    assert rush.helps == "a faster engine or device, or a first_audio_s of 3.0 s"


def test_what_is_said_to_help_helps() -> None:
    measured = device(0.5, 0.05)
    rush = DEFAULT_TIERS[Tier.RUSH].model_copy(update={"first_audio_s": 3.0})
    choices = choose(measured, {**DEFAULT_TIERS, Tier.RUSH: rush})
    assert all(choice.keeps_target for choice in choices)
    assert {choice.tier: choice.max_batch for choice in choices}[Tier.BULK] == 8


def test_a_target_missed_by_a_hair_is_not_given_up() -> None:
    barely = chosen(device(0.3, 0.21))  # 1.02 s of 1.00 s
    assert barely[Tier.BULK].max_batch == 4  # beside 8 rush would wait for 2.49 s
    assert barely[Tier.RUSH].wait_s <= DEFAULT_TIERS[Tier.RUSH].first_audio_s


def test_a_target_out_of_reach_costs_the_others_nothing() -> None:
    tiers = chosen(figures({1: 3.0, 2: 4.0}))
    assert (tiers[Tier.RUSH].max_batch, tiers[Tier.RUSH].keeps_target) == (1, False)
    assert tiers[Tier.BULK].max_batch == 2


def test_a_long_wait_for_a_batch_to_fill_counts() -> None:
    patient = DEFAULT_TIERS[Tier.RUSH].model_copy(update={"max_wait_s": 0.9})
    measured = figures({1: 0.1, 2: 0.15})
    [choice] = choose(measured, {Tier.RUSH: patient})
    assert choice.max_batch == 1  # in a batch of two it could wait 0.9 s, and take 0.15 s


tier_settings = st.builds(
    TierSettings,
    first_audio_s=st.floats(0.01, 100),
    per_1000_chars_s=st.just(1.0),
    floor_s=st.just(1.0),
    max_wait_s=st.floats(0, 1),
)


@given(
    st.dictionaries(st.sampled_from(range(1, 9)), st.floats(0.01, 10), min_size=1),
    st.dictionaries(st.sampled_from(Tier), tier_settings, min_size=1),
)
def test_nobody_misses_a_target_that_smaller_batches_would_have_kept(
    batch_s: dict[int, float], tiers: dict[Tier, TierSettings]
) -> None:
    choices = choose(figures(batch_s), tiers)
    assert {choice.tier for choice in choices} == set(tiers)
    smallest = min(batch_s)
    for choice in choices:
        settings = tiers[choice.tier]
        filling_s = settings.max_wait_s if smallest > 1 else 0.0
        soonest_s = max(batch_s[smallest], filling_s) + batch_s[smallest]
        possible = soonest_s <= settings.first_audio_s * TARGET_SHARE
        assert choice.keeps_target == possible
        assert bool(choice.helps) != possible
        assert choice.max_batch in batch_s


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


def test_a_batch_of_mixed_lengths_must_sound_right_too() -> None:
    measured = figures({1: 0.09, 2: 0.13, 4: 0.21})
    measured.append(Figures(batch=2, chars=240, mixed=True, batch_s=0.13))
    measured.append(Figures(batch=4, chars=240, mixed=True, batch_s=0.21, difference_db=-20.0))
    assert sizes(measured)[Tier.BULK] == 2
    assert "4 of mixed lengths" in chosen(measured)[Tier.BULK].why


def test_a_difference_that_nobody_hears_is_none() -> None:
    measured = figures({1: 0.09}) + figures({2: 0.13}, difference_db=-95.0)
    assert chosen(measured)[Tier.BULK].max_batch == 2


def test_a_size_that_failed_is_not_used() -> None:
    measured = figures({1: 0.09, 2: 0.13}) + figures({4: 0.0}, fault="MemoryError")
    assert chosen(measured)[Tier.BULK].max_batch == 2
    assert "MemoryError" in chosen(measured)[Tier.BULK].why


def test_an_engine_that_speaks_nothing_gives_no_tiers() -> None:
    with pytest.raises(FatalError, match="MemoryError"):
        choose(figures({1: 0.0}, fault="MemoryError"), DEFAULT_TIERS)


def test_the_file_is_what_settings_accept_and_binds_the_measured_engine_only() -> None:
    first = tiers_with("slow", choose(figures({1: 0.1, 2: 0.2}), DEFAULT_TIERS), DEFAULT_TIERS)
    accepted = Settings(tiers=first).tiers  # type: ignore[arg-type]
    second = tiers_with("quick", choose(figures({1: 0.1, 2: 0.15}), accepted), accepted)
    for tier, settings in Settings(tiers=second).tiers.items():  # type: ignore[arg-type]
        assert (settings.max_batch_of("slow"), settings.max_batch_of("quick")) == (1, 2)
        assert settings.max_batch_of("another") == DEFAULT_TIERS[tier].max_batch
        assert settings.model_copy(update={"max_batch_by_engine": {}}) == DEFAULT_TIERS[tier]
