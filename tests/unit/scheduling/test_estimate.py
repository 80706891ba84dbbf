"""Predictions as a customer would check them: by letting the work flow and looking at the clock."""

from math import inf, isinf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.estimate import (
    LONGEST_RETRY_S,
    TierLoad,
    busy_xrt,
    drain_s,
    expected_audio_s,
    fair_finish_s,
    job_eta_s,
    retry_after_s,
)
from shared.tiers import Tier

FARM_XRT = 100.0
amounts = st.integers(0, 100_000).map(float)
rates = st.integers(0, 200).map(float)


def test_an_empty_farm_keeps_nobody_waiting() -> None:
    assert [drain_s(tier, {}, FARM_XRT) for tier in Tier] == [0.0, 0.0, 0.0]


def test_a_farm_without_a_node_never_drains() -> None:
    loads = {tier: TierLoad(backlog_s=10.0) for tier in Tier}
    assert all(isinf(drain_s(tier, loads, 0.0)) for tier in Tier)


def test_rush_waits_for_rush_alone() -> None:
    loads = {
        Tier.RUSH: TierLoad(1_000.0, arriving_xrt=50.0),
        Tier.STANDARD: TierLoad(50_000.0, arriving_xrt=50.0),
        Tier.BULK: TierLoad(500_000.0),
    }
    assert drain_s(Tier.RUSH, loads, FARM_XRT) == pytest.approx(10.0)


def test_standard_waits_for_rush_that_is_there_and_that_keeps_coming() -> None:
    loads = {
        Tier.RUSH: TierLoad(1_000.0, arriving_xrt=20.0),
        Tier.STANDARD: TierLoad(7_000.0),
        Tier.BULK: TierLoad(500_000.0),
    }
    assert drain_s(Tier.STANDARD, loads, FARM_XRT) == pytest.approx(8_000.0 / 80.0)


def test_bulk_waits_for_everything() -> None:
    loads = {
        Tier.RUSH: TierLoad(1_000.0, arriving_xrt=20.0),
        Tier.STANDARD: TierLoad(7_000.0, arriving_xrt=30.0),
        Tier.BULK: TierLoad(92_000.0),
    }
    assert drain_s(Tier.BULK, loads, FARM_XRT) == pytest.approx(100_000.0 / 50.0)


def test_bulk_under_a_standing_flood_lives_on_its_share() -> None:
    loads = {Tier.RUSH: TierLoad(arriving_xrt=110.0), Tier.BULK: TierLoad(1_000.0)}
    assert drain_s(Tier.BULK, loads, FARM_XRT) == pytest.approx(100.0)


def test_much_late_bulk_slows_standard_by_its_share() -> None:
    loads = {
        Tier.STANDARD: TierLoad(9_000.0),
        Tier.BULK: TierLoad(500_000.0, late_s=500_000.0),
    }
    assert drain_s(Tier.STANDARD, loads, FARM_XRT) == pytest.approx(100.0)


def test_a_little_late_bulk_slows_standard_by_what_there_is() -> None:
    loads = {Tier.STANDARD: TierLoad(9_000.0), Tier.BULK: TierLoad(500_000.0, late_s=100.0)}
    assert drain_s(Tier.STANDARD, loads, FARM_XRT) == pytest.approx(91.0)


def test_standard_cannot_drain_while_rush_takes_the_whole_farm() -> None:
    loads = {Tier.RUSH: TierLoad(arriving_xrt=100.0), Tier.STANDARD: TierLoad(1.0)}
    assert drain_s(Tier.STANDARD, loads, FARM_XRT) == inf


@given(
    tier=st.sampled_from(Tier),
    rush_s=amounts,
    standard_s=amounts,
    bulk_s=amounts,
    more_s=amounts,
    rush_xrt=rates,
    standard_xrt=rates,
    farm_xrt=st.integers(1, 500),
)
def test_more_work_never_drains_sooner_and_a_faster_farm_never_later(
    *,
    tier: Tier,
    rush_s: float,
    standard_s: float,
    bulk_s: float,
    more_s: float,
    rush_xrt: float,
    standard_xrt: float,
    farm_xrt: int,
) -> None:
    def predicted(extra_s: float, xrt: float) -> float:
        loads = {
            Tier.RUSH: TierLoad(rush_s + extra_s, rush_xrt),
            Tier.STANDARD: TierLoad(standard_s + extra_s, standard_xrt),
            Tier.BULK: TierLoad(bulk_s + extra_s, late_s=bulk_s / 2),
        }
        return drain_s(tier, loads, xrt)

    now = predicted(0.0, float(farm_xrt))
    assert now >= 0
    assert predicted(more_s, float(farm_xrt)) >= now - 1e-9
    assert predicted(0.0, farm_xrt + 10.0) <= now + 1e-9


@given(st.integers(1, 300), st.lists(st.integers(1, 300), max_size=6))
def test_a_fair_finish_is_that_of_taking_turns(mine: int, others: list[int]) -> None:
    backlogs, served = [mine, *others], 0
    while backlogs[0]:  # a second of audio for each in turn
        for i, left in enumerate(backlogs):
            if left:
                backlogs[i] -= 1
                served += 1
    predicted = fair_finish_s(float(mine), [float(o) for o in others], tier_xrt=1.0)
    assert served == pytest.approx(predicted)


def test_a_small_job_is_not_delayed_by_the_size_of_anothers() -> None:
    assert fair_finish_s(60.0, [1_000_000.0], FARM_XRT) == pytest.approx(1.2)


def test_a_job_goes_on_at_the_rate_at_which_it_moved() -> None:
    assert job_eta_s(900.0, 30.0, otherwise_s=5.0) == pytest.approx(30.0)
    assert job_eta_s(900.0, None, otherwise_s=5.0) == pytest.approx(5.0)
    assert job_eta_s(900.0, 0.0, otherwise_s=5.0) == inf
    assert job_eta_s(0.0, 0.0, otherwise_s=5.0) == pytest.approx(0.0)


def test_idle_hours_do_not_lower_the_measured_rate() -> None:
    work = [(0.0, 1.0, 50.0), (0.5, 2.0, 50.0), (10_000.0, 10_001.0, 50.0)]
    assert busy_xrt(work) == pytest.approx(50.0)


def test_nothing_rendered_measures_nothing() -> None:
    assert busy_xrt([]) is None
    assert busy_xrt([(5.0, 5.0, 1.0)]) is None


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9), st.integers(1, 60)), min_size=1),
    st.randoms(use_true_random=False),
)
def test_the_measured_rate_is_audio_over_the_seconds_in_which_anything_ran(
    work: list[tuple[int, int, int]], shuffler: object
) -> None:
    seconds = {t for begun, took, _ in work for t in range(begun, begun + took)}
    expected = sum(audio for *_, audio in work) / len(seconds)
    renderings = [(float(begun), float(begun + took), float(audio)) for begun, took, audio in work]
    shuffler.shuffle(renderings)  # type: ignore[attr-defined]
    assert busy_xrt(renderings) == pytest.approx(expected)


def test_audio_is_as_long_as_it_is_read_and_its_pauses() -> None:
    assert expected_audio_s(1_500, 15.0) == pytest.approx(100.0)
    assert expected_audio_s(1_500, 15.0, speed=2.0, pauses_s=7.0) == pytest.approx(57.0)


@pytest.mark.parametrize(
    ("predicted_s", "retry_s"),
    [(29.0, 1), (30.2, 1), (90.1, 61), (1e9, LONGEST_RETRY_S), (inf, LONGEST_RETRY_S)],
)
def test_who_is_sent_away_is_told_when_the_promise_can_be_kept(
    predicted_s: float, retry_s: int
) -> None:
    assert retry_after_s(predicted_s, promise_s=30.0) == retry_s
