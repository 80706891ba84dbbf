"""The pure rules: how figures read, how long to wait, when to give a child up."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.patience import FIRST_DELAY_S, LONGEST_DELAY_S, Patience
from cli.restarts import RestartPolicy
from cli.words import clock_time, columns, size, times_real_time

times_s = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0, "0:00"),
        (6.6, "0:07"),
        (151, "2:31"),
        (3599.6, "1:00:00"),
        (3723, "1:02:03"),
        (-3, "0:00"),
    ],
)
def test_lengths_of_time_read_like_a_player_shows_them(seconds: float, written: str) -> None:
    assert clock_time(seconds) == written


@pytest.mark.parametrize(
    ("count_bytes", "written"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (2_345_678, "2.3 MB"), (7e12, "7000.0 GB")],
)
def test_sizes_take_the_unit_that_keeps_them_short(count_bytes: int, written: str) -> None:
    assert size(count_bytes) == written


def test_a_render_that_took_no_time_has_no_rate() -> None:
    assert times_real_time(10, 0).startswith("- ")
    assert times_real_time(30, 2).startswith("15.0 ")


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1))
def test_columns_hold_one_line_for_each_row(rows: list[tuple[str, str]]) -> None:
    lines = columns(rows)
    assert len(lines) == len(rows)
    assert all(len(line.splitlines()) <= 1 for line in lines)


def test_columns_are_aligned_and_nothing_is_cut_off() -> None:
    assert columns([("A", "B"), ("long\nword", ""), ("x", "y" * 300)]) == [
        "A          B",
        "long word",
        "x          " + "y" * 300,
    ]


@given(st.lists(st.floats(0, 30), max_size=40), st.integers())
def test_patience_never_waits_past_its_end(steps_s: list[float], seed: int) -> None:
    now_s = 0.0
    patience = Patience(20.0, lambda: now_s, Random(seed))
    first_failure_s = None
    for step_s in steps_s:
        now_s += step_s
        first_failure_s = now_s if first_failure_s is None else first_failure_s
        delay_s = patience.failed()
        if delay_s is None:
            assert now_s - first_failure_s > 20.0 - 1e-6
            return
        assert now_s - first_failure_s < 20.0 + 1e-6
        assert 0 < delay_s <= LONGEST_DELAY_S
        assert now_s + delay_s <= first_failure_s + 20.0 + 1e-6
        now_s += delay_s


def test_patience_starts_afresh_after_a_success() -> None:
    now_s = 0.0
    patience = Patience(1.0, lambda: now_s, Random(1))
    for _ in range(20):
        delay_s = patience.failed()
        assert delay_s is not None
        assert delay_s <= FIRST_DELAY_S
        patience.succeeded()
        now_s += 10


def test_a_server_that_asks_for_time_gets_it() -> None:
    patience = Patience(60.0, lambda: 0.0, Random(1))
    assert patience.failed(at_least_s=7.0) == 7.0


def test_no_patience_means_one_try() -> None:
    assert Patience(0.0, lambda: 5.0, Random(1)).failed() is None


@given(st.lists(times_s, max_size=30), times_s)
def test_a_child_is_given_up_only_after_five_deaths_within_a_minute(
    deaths_s: list[float], later_s: float
) -> None:
    deaths_s = sorted(deaths_s)
    now_s = (deaths_s[-1] if deaths_s else 0.0) + later_s
    recent = [death_s for death_s in deaths_s if now_s - death_s < 60]
    delay_s = RestartPolicy().delay_s(deaths_s, now_s)
    assert (delay_s is None) == (len(recent) >= 5)
    if delay_s is not None:
        assert 0 < delay_s <= 5.0


def test_each_death_of_late_doubles_the_wait() -> None:
    policy = RestartPolicy()
    waits_s = [policy.delay_s([10.0] * deaths, 10.0) for deaths in range(1, 6)]
    assert waits_s == [0.25, 0.5, 1.0, 2.0, None]
