"""A hang is told from a long step by the steps before it, and never from a pause of the machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.host.pace import (
    KNOWN_AFTER_STEPS,
    LEAST_S,
    TIMES_LONGEST,
    HangWatch,
    Pace,
    allowed_s,
)
from worker.host.protocol import Vitals

SILENCE_S = 60.0
times = st.floats(0.001, 30.0)
steps_seen = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 400), times), max_size=60)


def pace_of(seen: list[tuple[int, int, float]]) -> Pace:
    pace = Pace()
    for rows, chars, took_s in seen:
        pace = pace.after(rows, chars, took_s)
    return pace


@given(steps_seen, st.integers(1, 8), st.integers(1, 400))
def test_no_step_gets_less_than_the_least_nor_less_than_many_times_the_longest_one(
    seen: list[tuple[int, int, float]], rows: int, chars: int
) -> None:
    allowed = allowed_s(pace_of(seen).usual_s(rows, chars), SILENCE_S)
    assert LEAST_S <= allowed <= SILENCE_S
    longest_s = max((took_s for _, _, took_s in seen), default=0.0)
    assert allowed >= min(SILENCE_S, 0.9 * TIMES_LONGEST * longest_s)
    unlike = any(
        [rows > max(r for r, _, _ in seen), chars > max(c for _, c, _ in seen)] if seen else [True]
    )
    if unlike or len(seen) < KNOWN_AFTER_STEPS:
        assert allowed == SILENCE_S


@given(times, st.floats(0.1, 5.0))
def test_the_operators_limit_is_never_exceeded(usual_s: float, most_s: float) -> None:
    assert allowed_s(usual_s, most_s) == most_s


def test_a_slow_first_step_does_not_count_for_ever() -> None:
    pace = pace_of([(8, 400, 30.0), *[(8, 400, 0.1)] * 6_000])
    assert allowed_s(pace.usual_s(8, 400), SILENCE_S) == LEAST_S


def looks(watch: HangWatch, moments: list[tuple[float, float]], usual_s: float) -> list[bool]:
    """What the watch says of one step, at each moment of its clock and age of the step."""
    return [
        watch.hangs(Vitals(steps=50, utterances=400, busy_s=busy_s, usual_s=usual_s), now_s)
        for now_s, busy_s in moments
    ]


def test_a_hang_is_seen_when_a_known_step_has_been_watched_for_so_long() -> None:
    said = looks(HangWatch(SILENCE_S), [(100.0 + n, 0.5 + n) for n in range(20)], 0.3)
    assert said.index(True) in (11, 12)
    unknown = looks(HangWatch(SILENCE_S), [(100.0 + n, 0.5 + n) for n in range(70)], 0.0)
    assert unknown.index(True) in (60, 61)


@pytest.mark.parametrize("pause_s", [15.0, 50.0])
def test_a_pause_of_the_machine_is_no_hang(pause_s: float) -> None:
    """given a step that is as old as the pause when all goes on / then it is looked at again."""
    before = [(100.0, 0.2), (101.0, 1.2)]
    after = [(101.0 + pause_s, 1.2 + pause_s), (102.0 + pause_s, 2.2 + pause_s)]
    assert looks(HangWatch(SILENCE_S), [*before, *after], 0.3) == [False] * 4


def test_steps_that_follow_each_other_are_not_taken_for_one() -> None:
    watch = HangWatch(SILENCE_S)
    for n in range(100):
        vitals = Vitals(steps=n, utterances=n, busy_s=5.0, usual_s=0.1)
        assert not watch.hangs(vitals, 100.0 + n)


def test_nothing_to_do_is_no_hang() -> None:
    watch = HangWatch(SILENCE_S)
    idle = Vitals(steps=7, utterances=7, busy_s=0.0)
    assert not any(watch.hangs(idle, 100.0 + n) for n in range(200))
