"""Room at the door: nobody is refused for nothing, and whoever is gets an honest waiting time."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from api.capacity import (
    MAX_RETRY_AFTER_S,
    Demand,
    Load,
    audio_due_before,
    check_quota,
    check_room,
    check_size,
    check_tier,
    demand_of,
    promise_s,
)
from shared.errors import CapacityError, UsageError
from shared.ledger.demand import LiveJob
from shared.scheduling.pace import steps_s
from shared.settings import Settings
from shared.tenants import Quota, TenantBacklog
from shared.tiers import Tier
from tests.factories import new_job

SETTINGS = Settings()
NOW = 1_000_000.0
NEWS = Demand(Tier.STANDARD, 20.0, 300)


def live(
    audio_s: float,
    *,
    tier: Tier = Tier.STANDARD,
    age_s: float = 0.0,
    due_in_s: float = 120.0,
    done: float = 0.0,
) -> LiveJob:
    return LiveJob(tier, NOW - age_s, NOW + due_in_s, audio_s, done)


def refusal(check: Callable[[], None]) -> CapacityError | UsageError | None:
    try:
        check()
    except (CapacityError, UsageError) as error:
        return error
    return None


def at_the_door(
    demand: Demand, *jobs: LiveJob, rate: float | None = 10.0, settings: Settings = SETTINGS
) -> CapacityError | None:
    error = refusal(lambda: check_room(demand, Load(jobs, rate, NOW), settings))
    assert not isinstance(error, UsageError)
    return error


tiers = st.sampled_from(Tier)
moments = st.floats(0, 100_000)
demands = st.builds(
    Demand, tiers, st.floats(0.1, 100_000), st.integers(1, 5_000_000), st.floats(0.0, 10_000)
)
lives = st.lists(
    st.builds(
        lambda tier, age, due, audio, done: LiveJob(tier, NOW - age, NOW - age + due, audio, done),
        tiers,
        moments,
        moments,
        st.floats(0, 100_000),
        st.floats(0, 1),
    ),
    max_size=8,
)
rates = st.floats(0.01, 10_000)


@given(demands, st.none() | rates)
def test_an_idle_farm_refuses_nobody(demand: Demand, rate: float | None) -> None:
    assert at_the_door(demand, rate=rate) is None


@given(demands, lives)
def test_nobody_is_refused_a_promise_for_lack_of_a_rate(
    demand: Demand, jobs: list[LiveJob]
) -> None:
    assume(demand.tier is not Tier.BULK)
    assert at_the_door(demand, *jobs, rate=None) is None


@given(demands, lives, rates)
def test_more_work_before_it_never_lets_a_job_in(
    demand: Demand, jobs: list[LiveJob], rate: float
) -> None:
    if at_the_door(demand, *jobs, rate=rate) is not None:
        more = [*jobs, live(500.0, tier=demand.tier)]
        assert at_the_door(demand, *more, rate=rate) is not None


@given(demands, lives, rates, st.floats(1.0, 100.0))
def test_a_faster_farm_lets_in_whoever_a_slower_one_did(
    demand: Demand, jobs: list[LiveJob], rate: float, factor: float
) -> None:
    if at_the_door(demand, *jobs, rate=rate) is None:
        assert at_the_door(demand, *jobs, rate=rate * factor) is None


@given(demands, lives, rates)
def test_a_refused_job_is_told_a_time_it_can_wait(
    demand: Demand, jobs: list[LiveJob], rate: float
) -> None:
    error = at_the_door(demand, *jobs, rate=rate)
    if error is not None:
        assert error.code == "farm-full"
        assert 1.0 <= error.retry_after_s <= MAX_RETRY_AFTER_S


def test_after_the_time_it_was_told_a_job_comes_in() -> None:
    backlog = live(3_000.0)
    error = at_the_door(NEWS, backlog)
    assert error is not None
    assert error.fields["predicted_wait_s"] == 300.0
    worked_off = error.retry_after_s * 10.0 / backlog.audio_s
    assert at_the_door(NEWS, live(3_000.0, done=worked_off + 0.001)) is None


def test_the_promise_is_kept_to_the_second() -> None:
    may_wait_s = promise_s(NEWS.chars, SETTINGS.tiers[Tier.STANDARD]) - NEWS.audio_s / 10.0
    assert at_the_door(NEWS, live(10.0 * may_wait_s)) is None
    assert at_the_door(NEWS, live(10.0 * may_wait_s + 1.0)) is not None


def test_a_plan_and_a_file_are_part_of_the_promise() -> None:
    may_wait_s = promise_s(NEWS.chars, SETTINGS.tiers[Tier.STANDARD]) - NEWS.audio_s / 10.0
    backlog = live(10.0 * (may_wait_s - 1.0))
    assert at_the_door(NEWS, backlog) is None
    assert at_the_door(replace(NEWS, steps_s=0.9), backlog) is None
    error = at_the_door(replace(NEWS, steps_s=3.0), backlog)
    assert error is not None
    assert error.retry_after_s == pytest.approx(2.0)


def test_what_takes_longer_than_its_promise_alone_may_wait_for_its_first_audio() -> None:
    slow = replace(NEWS, steps_s=1_000.0)
    assert at_the_door(slow, live(10.0 * 29.0)) is None
    assert at_the_door(slow, live(10.0 * 31.0)) is not None


def test_a_job_asks_for_its_plan_and_the_file_of_its_last_chapter() -> None:
    text = "x" * 300_000
    whole = new_job(text=text, expected_audio_s=20_000.0)
    asked = demand_of(whole)
    assert (asked.tier, asked.audio_s, asked.chars) == (Tier.STANDARD, 20_000.0, 300_000)
    in_time = steps_s(300_000, 20_000.0, whole.spec.format)
    assert asked.steps_s == pytest.approx(in_time)
    chapters = [("One", 0, 270_000), ("Two", 270_000, 300_000)]
    asked = demand_of(replace(whole, chapters=chapters))
    assert asked.steps_s == pytest.approx(steps_s(300_000, 2_000.0, whole.spec.format))


def test_a_book_due_tomorrow_does_not_keep_the_news_out() -> None:
    book = live(40_000.0, due_in_s=30_000.0)
    assert at_the_door(NEWS, book) is None
    assert at_the_door(NEWS, book, book) is None
    assert at_the_door(NEWS, live(40_000.0, due_in_s=60.0)) is not None


def test_only_rush_comes_before_rush() -> None:
    rush = Demand(Tier.RUSH, 5.0, 75)
    assert at_the_door(rush, live(1e6), live(1e6, tier=Tier.BULK)) is None
    assert at_the_door(rush, live(1e6, tier=Tier.RUSH)) is not None


def test_late_bulk_is_held_to_its_floor_and_keeps_nobody_out() -> None:
    late = live(1e6, tier=Tier.BULK, age_s=50_000.0, due_in_s=-1.0)
    assert at_the_door(NEWS, late) is None
    assert at_the_door(NEWS, live(1e6, age_s=50_000.0, due_in_s=-1.0)) is not None


def test_bulk_is_taken_to_a_depth_however_slow_the_farm_is() -> None:
    settings = Settings(bulk_backlog_audio_s=1_000.0)
    bulk = Demand(Tier.BULK, 400.0, 6_000)
    waiting = live(600.0, tier=Tier.BULK)
    assert at_the_door(bulk, waiting, rate=0.001, settings=settings) is None
    assert at_the_door(bulk, waiting, live(1.0, tier=Tier.BULK), settings=settings) is not None
    assert at_the_door(bulk, live(1e9), settings=settings) is None
    huge = Demand(Tier.BULK, 5_000.0, 75_000)
    assert at_the_door(huge, settings=settings) is None


def test_an_operator_may_take_everything() -> None:
    assert at_the_door(NEWS, live(1e9), settings=Settings(refuse_when_full=False)) is None


@given(demands, lives)
def test_what_comes_before_is_never_more_than_what_waits(
    demand: Demand, jobs: list[LiveJob]
) -> None:
    before_s = audio_due_before(demand, Load(jobs, 1.0, NOW), dict(SETTINGS.tiers))
    waiting_s = sum(job.audio_s * (1 - job.done) for job in jobs)
    assert 0.0 <= before_s <= waiting_s * (1 + 1e-9) + 1e-9


backlogs = st.builds(TenantBacklog, st.floats(0, 1e6), st.integers(0, 1_000))
quotas = st.builds(Quota, st.none() | st.floats(1, 1e6), st.none() | st.integers(1, 1_000))


@given(demands, backlogs, quotas, st.none() | rates)
def test_what_passes_the_quota_stays_in_it(
    demand: Demand, backlog: TenantBacklog, quota: Quota, rate: float | None
) -> None:
    error = refusal(lambda: check_size(demand, quota)) or refusal(
        lambda: check_quota(demand, backlog, quota, rate)
    )
    if isinstance(error, CapacityError):
        assert error.code == "over-quota"
        assert 1.0 <= error.retry_after_s <= MAX_RETRY_AFTER_S
    elif error is not None:
        assert error.code == "larger-than-quota"
        assert quota.audio_s is not None
        assert demand.audio_s > quota.audio_s
    else:
        assert quota.audio_s is None or backlog.audio_s + demand.audio_s <= quota.audio_s
        assert quota.jobs is None or backlog.jobs < quota.jobs


def test_a_tier_that_a_key_may_not_use_is_refused_with_those_it_may() -> None:
    check_tier(Tier.BULK, frozenset(Tier))
    with pytest.raises(UsageError) as caught:
        check_tier(Tier.RUSH, frozenset({Tier.BULK, Tier.STANDARD}))
    assert caught.value.code == "tier-not-allowed"
    assert caught.value.fields["choices"] == ["standard", "bulk"]
