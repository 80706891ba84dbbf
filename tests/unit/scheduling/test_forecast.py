"""The farm's rate and its backlogs, on histories whose answer is known."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.depth import Room
from shared.scheduling.forecast import Rate, Spoken, audio_per_char_s, drains_s, rate_of
from shared.tiers import Tier
from tests.unit.scheduling.devices import AUDIO_S, Device


def steady(
    *, start: float = 0.0, count: int = 100, every_s: float = 0.1, latency_s: float = 1.0
) -> list[Spoken]:
    """A busy farm: a segment of 5 s audio every 0.1 s, each a second on its way."""
    return [
        Spoken(at - latency_s, at, chars=75, audio_s=5.0)
        for at in (start + i * every_s for i in range(count))
    ]


def room_of(slots: int) -> Room:
    return Room(2 * slots, 5 * slots)


def test_a_busy_farm_has_the_rate_of_its_commits() -> None:
    rate = rate_of([steady()], now_s=10, rooms=[room_of(5)])
    assert rate is not None
    assert (rate.audio_s_per_s, rate.is_bound) == (pytest.approx(50), False)


@pytest.mark.parametrize("first", range(8))
def test_it_does_not_matter_where_in_a_batch_a_history_begins(first: int) -> None:
    """given batches of 8 that take a second / when some of the first are not read any more."""
    batches = [
        Spoken(batch - 2.0, batch + member / 1000, chars=75, audio_s=5.0)
        for batch in range(8)
        for member in range(8)
    ]
    for read in (batches[first:24], batches[first:48], batches[first:]):
        rate = rate_of([read], now_s=8, rooms=[room_of(8)])
        assert rate is not None
        assert rate.audio_s_per_s == pytest.approx(40, rel=0.01)


def test_idle_time_does_not_count() -> None:
    hours_later = [*steady(), *steady(start=9_000)]
    rate = rate_of([hours_later], now_s=9_010, rooms=[room_of(5)])
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(50, rel=0.01)


def test_of_late_counts_before_long_ago() -> None:
    fast_then_slow = [*steady(every_s=0.01), *steady(start=200, every_s=0.05, count=200)]
    rate = rate_of([fast_then_slow], now_s=210, rooms=[room_of(10)])
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(100, rel=0.01)


def test_single_sentences_do_not_hide_what_full_batches_showed() -> None:
    """given a burst of batches / when single sentences follow for hours / then it still counts."""
    burst = steady(count=200)
    trickle = steady(start=100, count=100, every_s=20)
    rate = rate_of([[*burst, *trickle]], now_s=2_100, rooms=[room_of(5)])
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(50, rel=0.01)


def test_even_many_single_sentences_of_the_last_minute_hide_nothing() -> None:
    trickle = steady(start=100, count=200, every_s=0.25, latency_s=0.2)
    rate = rate_of([[*steady(count=200), *trickle]], now_s=151, rooms=[room_of(5)])
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(50, rel=0.01)


def test_nodes_that_stood_by_will_help() -> None:
    one_at_a_time = [Spoken(float(i), i + 1.0, 75, 5.0) for i in range(50)]
    rates = [rate_of([one_at_a_time], now_s=50, rooms=[room_of(slots)]) for slots in (1, 4)]
    assert [rate and rate.audio_s_per_s for rate in rates] == pytest.approx([10, 40])
    assert all(rate and rate.is_bound for rate in rates)


def test_a_tier_of_small_batches_fills_its_devices_with_fewer_at_once() -> None:
    """given rush whose batches are half as large / then half as many in hand are enough for it."""
    rates = [
        rate_of([steady(), []], now_s=10, rooms=[Room(rush, 100), Room(20, 100)])
        for rush in (20, 10)
    ]
    assert [rate and rate.is_bound for rate in rates] == [True, False]
    assert [rate and rate.audio_s_per_s for rate in rates] == pytest.approx([100, 50])


def test_nodes_that_have_gone_help_no_more() -> None:
    rate = rate_of([steady()], now_s=10, rooms=[room_of(1)])
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(25)  # of ten at once five would be in hand


def test_tiers_add_up_over_the_time_that_all_of_them_cover() -> None:
    """given 100 of bulk in 10 s, and 60 of rush in 60 s / then only the last 10 s are compared."""
    bulk = steady(start=50.0)
    rush = steady(count=60, every_s=1.0)
    rate = rate_of([rush, bulk], now_s=60, rooms=[room_of(5)] * 2)
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(55, rel=0.05)


@pytest.mark.parametrize(
    ("samples", "slots"), [([], 2), ([[]], 2), ([steady()], 0), ([steady(count=8)], 2)]
)
def test_without_nodes_or_history_no_rate_is_known(samples: list[list[Spoken]], slots: int) -> None:
    assert rate_of(samples, now_s=10, rooms=[room_of(slots)] * len(samples)) is None


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 20)), max_size=30), st.integers(0, 9))
def test_a_rate_is_positive_or_unknown(times: list[tuple[float, float]], slots: int) -> None:
    spoken = [Spoken(claimed, claimed + took, 75, 5.0) for claimed, took in times]
    rate = rate_of([spoken], now_s=100, rooms=[room_of(slots)])
    assert rate is None or 0 < rate.audio_s_per_s < inf


# Storing takes half as long as a batch at most: were it longer than one, no two segments a slot
# would keep the device busy.
devices = st.builds(
    lambda slots, base_s, each_s, store, rush: Device(
        slots, base_s, each_s, store * (base_s + slots * each_s), rush
    ),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.floats(0.02, 1.0),
    st.floats(0.001, 0.1),
    st.floats(0.0, 0.5),
    st.booleans(),
)


@given(devices, st.integers(9, 120), st.integers(1, 4))
def test_quiet_times_hardly_show_less_than_a_device_can_do(
    device: Device, count: int, together: int
) -> None:
    """given a few sentences at a time, with rests / then only their beginnings and ends cost."""
    spoken = device.speak(10.0 * (n // together) for n in range(count))
    rate = rate_of([spoken], now_s=10.0 * count, rooms=[device.room])
    if rate is not None:
        assert rate.audio_s_per_s >= 0.75 * device.best


@given(devices, st.integers(9, 120))
def test_quiet_times_show_no_more_than_half_as_many_again_as_fill_the_slots(
    device: Device, count: int
) -> None:
    spoken = device.speak(10.0 * n for n in range(count))
    rate = rate_of([spoken], now_s=10.0 * count, rooms=[device.room])
    alone_s = device.base_s + device.each_s + device.store_s
    assert rate is not None
    assert rate.is_bound
    assert rate.audio_s_per_s <= 1.01 * 1.5 * device.slots * AUDIO_S / alone_s


@given(devices, st.integers(0, 100), st.integers(0, 100))
def test_busy_times_show_what_a_device_can_do_whatever_quiet_times_lie_around(
    device: Device, before: int, after: int
) -> None:
    burst_at = 10.0 * before + 100.0
    arrivals = [10.0 * n for n in range(before)] + [burst_at] * 400
    spoken = device.speak(arrivals)
    ended_at = spoken[-1].done_at
    spoken += [
        Spoken(one.claimed_at + ended_at, one.done_at + ended_at, one.chars, one.audio_s)
        for one in device.speak(10.0 * (n + 1) for n in range(after))
    ]
    rate = rate_of([spoken[-500:]], now_s=spoken[-1].done_at, rooms=[device.room])
    assert rate is not None
    assert not rate.is_bound
    assert 0.9 * device.best <= rate.audio_s_per_s <= 1.3 * device.best


def test_a_burst_too_short_to_be_timed_shows_no_miracle() -> None:
    """given a batch on each of two nodes, a millisecond apart / then what they hold is the most."""
    spoken = [Spoken(0.0, 0.4 + 0.001 * (n // 8), 75, AUDIO_S) for n in range(16)]
    rate = rate_of([spoken], now_s=1, rooms=[room_of(16)])
    assert rate is not None
    assert rate.audio_s_per_s <= 5 * 16 * AUDIO_S / 0.4


def test_what_was_heard_corrects_what_the_engine_says() -> None:
    assert audio_per_char_s([], chars_per_audio_s=20) == pytest.approx(1 / 20)
    assert audio_per_char_s(steady(), chars_per_audio_s=20) == pytest.approx(1 / 15, rel=0.05)


def test_a_tier_waits_for_those_above_it() -> None:
    backlog = {Tier.RUSH: 10.0, Tier.STANDARD: 100.0, Tier.BULK: 1_000.0}
    waits = drains_s(backlog, Rate(10.0, 99))
    assert waits == {Tier.RUSH: 1.0, Tier.STANDARD: 11.0, Tier.BULK: 111.0}


def test_without_a_rate_only_an_empty_tier_is_sure_of_its_wait() -> None:
    waits = drains_s({Tier.STANDARD: 1.0}, None)
    assert waits == {Tier.RUSH: 0.0, Tier.STANDARD: None, Tier.BULK: None}
