"""The farm's rate and its backlogs, on histories whose answer is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.forecast import Rate, Spoken, audio_per_char_s, drains_s, rate_of
from shared.tiers import Tier


def steady(
    *, start: float = 0.0, count: int = 100, every_s: float = 0.1, latency_s: float = 1.0
) -> list[Spoken]:
    """A busy farm: a segment of 5 s audio every 0.1 s, each a second on its way."""
    return [
        Spoken(at - latency_s, at, chars=75, audio_s=5.0)
        for at in (start + i * every_s for i in range(count))
    ]


def test_a_busy_farm_has_the_rate_of_its_commits() -> None:
    rate = rate_of([steady()], now_s=10, nodes=2)
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(50)


def test_idle_time_does_not_count() -> None:
    hours_later = [*steady(), *steady(start=9_000)]
    rate = rate_of([hours_later], now_s=9_010, nodes=2)
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(50, rel=0.01)


def test_of_late_counts_before_long_ago() -> None:
    fast_then_slow = [*steady(every_s=0.01), *steady(start=200, every_s=0.05, count=200)]
    rate = rate_of([fast_then_slow], now_s=210, nodes=1)
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(100, rel=0.01)


def test_single_sentences_do_not_hide_what_full_batches_showed() -> None:
    """given a burst of batches / when single sentences follow for hours / then it still counts."""
    burst = steady(count=200)
    trickle = steady(start=100, count=100, every_s=20)
    rate = rate_of([[*burst, *trickle]], now_s=2_100, nodes=1)
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(50, rel=0.01)


def test_nodes_that_stood_by_will_help() -> None:
    one_at_a_time = [Spoken(float(i), i + 1.0, 75, 5.0) for i in range(50)]
    rates = [rate_of([one_at_a_time], now_s=50, nodes=nodes) for nodes in (1, 4)]
    assert [rate and rate.audio_s_per_s for rate in rates] == pytest.approx([5, 20])


def test_tiers_add_up_over_the_time_that_all_of_them_cover() -> None:
    """given 100 of bulk in 10 s, and 60 of rush in 60 s / then only the last 10 s are compared."""
    bulk = steady(start=50.0)
    rush = steady(count=60, every_s=1.0)
    rate = rate_of([rush, bulk], now_s=60, nodes=1)
    assert rate is not None
    assert rate.audio_s_per_s == pytest.approx(55, rel=0.05)


@pytest.mark.parametrize(
    ("samples", "nodes"), [([], 2), ([[]], 2), ([steady()], 0), ([steady(count=8)], 2)]
)
def test_without_nodes_or_history_no_rate_is_known(samples: list[list[Spoken]], nodes: int) -> None:
    assert rate_of(samples, now_s=10, nodes=nodes) is None


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 20)), max_size=30), st.integers(0, 9))
def test_a_rate_is_positive_or_unknown(times: list[tuple[float, float]], nodes: int) -> None:
    spoken = [Spoken(claimed, claimed + took, 75, 5.0) for claimed, took in times]
    rate = rate_of([spoken], now_s=100, nodes=nodes)
    assert rate is None or rate.audio_s_per_s > 0


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
