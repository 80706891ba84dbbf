"""The moving window: never more than the limit in any window, and the figures it tells are true."""

from hypothesis import given
from hypothesis import strategies as st

from api.rates import MovingWindow

steps = st.lists(st.floats(0, 0.5), min_size=1, max_size=120)


@given(steps, st.integers(1, 10))
def test_no_window_ever_holds_more_than_the_limit(steps_s: list[float], limit: int) -> None:
    window, now, passed = MovingWindow(limit), 100.0, list[float]()
    for step_s in steps_s:
        now += step_s
        if window.hit("a", now).allowed:
            passed.append(now)
    for at in passed:
        assert sum(at - 1 < other <= at for other in passed) <= limit


@given(steps, st.integers(1, 10))
def test_what_is_told_is_what_happens(steps_s: list[float], limit: int) -> None:
    window, now = MovingWindow(limit), 100.0
    for step_s in steps_s:
        now += step_s
        verdict = window.hit("a", now)
        assert 0 <= verdict.remaining < limit or (limit == 1 and verdict.remaining == 0)
        assert 0 <= verdict.reset_s <= 1
        assert verdict.allowed or verdict.remaining == 0
        if not verdict.allowed:
            now += verdict.reset_s + 1e-6
            assert window.hit("a", now).allowed


def test_exactly_as_many_as_told_may_follow_at_once() -> None:
    window = MovingWindow(5)
    first = window.hit("a", 10.0)
    assert (first.allowed, first.remaining, first.reset_s) == (True, 4, 1.0)
    assert [window.hit("a", 10.0).allowed for _ in range(5)] == [True] * 4 + [False]


def test_callers_do_not_take_from_each_other() -> None:
    window = MovingWindow(1)
    assert window.hit("a", 1.0).allowed
    assert not window.hit("a", 1.5).allowed
    assert window.hit("b", 1.5).allowed


def test_callers_who_are_quiet_are_forgotten() -> None:
    window = MovingWindow(3)
    for n in range(10_000):
        window.hit(f"caller {n}", n * 0.01)
    assert len(window._passed) <= 250
