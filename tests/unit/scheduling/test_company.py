"""How long a job takes beside others: pace that is known, company that comes, differs and goes."""

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.company import Neighbour, expected_share, time_left_s
from shared.scheduling.cost import Cost
from shared.scheduling.pace import Mark
from shared.tiers import Tier

BY_CHARS = Cost(per_segment=0.0, per_char=1.0)
BY_SEGMENT = Cost(per_segment=1.0, per_char=0.0)


def story(*rates: float, chars: int = 50, since: float = 0.0) -> list[Mark]:
    """A mark a second, of a job that makes so many characters in each of these seconds."""
    settled = accumulate(rates, initial=0.0)
    return [
        Mark(since + second, int(total), int(total) // chars)
        for second, total in enumerate(settled)
    ]


def left_s(
    marks: Sequence[Mark],
    neighbours: Sequence[Neighbour] = (),
    *,
    cost: Cost = BY_CHARS,
    chars: int = 12_000,
    segments: int = 240,
) -> float:
    *before, now = marks
    found = time_left_s(
        before, now, cost, chars_left=chars, segments_left=segments, neighbours=neighbours
    )
    assert found is not None
    return found


def neighbour(marks: Sequence[Mark], chars: int, *, long: int = 50, fair: float = 1.0) -> Neighbour:
    return Neighbour(marks, chars, chars // long, fair)


def test_alone_it_goes_on_at_its_own_pace() -> None:
    assert left_s(story(*[600.0] * 30)) == pytest.approx(20)


def test_a_steady_neighbour_of_its_own_kind_changes_nothing() -> None:
    """given two that share since long / then the job's own rate is the answer."""
    both = story(*[300.0] * 60)
    assert left_s(both, [neighbour(both, 900_000)]) == pytest.approx(40, rel=0.02)


def test_a_neighbour_that_has_just_come_is_foreseen() -> None:
    """given a job alone for 27 s / when another joins for 3 s / then it knows of the half rate."""
    mine = story(*[600.0] * 27, *[300.0] * 3)
    joined = story(*[300.0] * 3, since=27.0)
    assert left_s(mine) == pytest.approx(21, rel=0.05)
    assert left_s(mine, [neighbour(joined, 900_000)]) == pytest.approx(40, rel=0.05)


def test_one_that_waits_and_has_not_begun_counts_by_what_the_policy_gives() -> None:
    mine = story(*[600.0] * 30)
    assert left_s(mine, [neighbour([], 900_000)]) == pytest.approx(40)
    assert left_s(mine, [neighbour([], 900_000, fair=0.0)]) == pytest.approx(20)


def test_a_neighbour_leaves_at_its_end() -> None:
    """given a neighbour with little left / then the job has the farm for itself after that."""
    both = story(*[300.0] * 60)
    assert left_s(both, [neighbour(both, 3_000)]) == pytest.approx(25, rel=0.02)


def test_one_that_has_ended_counts_towards_the_pace_only() -> None:
    mine = story(*[300.0] * 20, *[600.0] * 10)
    ended = [*story(*[300.0] * 20), Mark(30.0, 6_000, 120)]
    assert left_s(mine, [neighbour(ended, 0)]) == pytest.approx(20, rel=0.02)


def test_beside_shorter_sentences_a_job_gets_more_of_the_device() -> None:
    """A device that takes its time by the segment, turns that are given by the character.

    given a page of long sentences beside short ones / when the pages to come are alike / then the
    job's own rate of segments, a third of the device's, was not what it will be.
    """
    mine, other = story(*[400.0] * 40, chars=100), story(*[400.0] * 40, chars=50)
    steady = neighbour(other, 900_000, long=75)
    found = left_s(mine, [steady], cost=BY_SEGMENT, chars=12_000, segments=160)
    assert found == pytest.approx(320 / 12, rel=0.03)  # both at 12 segments a second together


def test_short_sentences_to_come_count_as_the_device_counts_them() -> None:
    marks, now = [Mark(0, 0, 0)], Mark(10, 1_000, 10)
    left = {"chars_left": 1_000, "segments_left": 30}
    assert time_left_s(marks, now, BY_CHARS, **left) == pytest.approx(10)
    assert time_left_s(marks, now, Cost(1.0, 0.0), **left) == pytest.approx(30)


def test_too_little_shows_no_time() -> None:
    few = Mark(5, 90, 3)
    nothing = time_left_s([], few, BY_CHARS, chars_left=10, segments_left=1)
    assert nothing is None
    assert time_left_s([Mark(1, 0, 0)], few, BY_CHARS, chars_left=9, segments_left=1) is None


@given(
    rates=st.lists(st.integers(50, 900), min_size=1, max_size=5),
    lefts=st.lists(st.integers(0, 200_000), min_size=5, max_size=5),
    mine=st.integers(1_000, 100_000),
)
def test_it_is_what_turns_by_the_character_come_to(
    rates: list[int], lefts: list[int], mine: int
) -> None:
    """Steady rates since long; each neighbour leaves when it is done and the others take its part.

    Held against the farm played through, a slice of the job at a time.
    """
    own = story(*[400.0] * 60)
    others = [story(*[float(rate)] * 60) for rate in rates]
    found = left_s(
        own,
        [
            neighbour(marks, left, fair=rate / 400)
            for marks, left, rate in zip(others, lefts, rates, strict=False)
        ],
        chars=mine,
        segments=mine // 50,
    )
    pace, played_s, slices = 400 + sum(rates), 0.0, 1_000
    waiting = [float(left) for left in lefts[: len(rates)]]
    for _ in range(slices):
        slice_ = mine / slices
        for n, rate in enumerate(rates):
            taken = min(waiting[n], slice_ * rate / 400)
            waiting[n] -= taken
            played_s += taken / pace
        played_s += slice_ / pace
    assert found == pytest.approx(played_s, rel=0.05)


def test_a_tenant_with_many_jobs_gets_no_more_for_all_of_them() -> None:
    mine, other = (Tier.STANDARD, "a"), (Tier.STANDARD, "b")
    assert expected_share(mine, other, {mine: 1, other: 10}) == pytest.approx(0.1)
    assert expected_share(mine, other, {mine: 4, other: 1}) == pytest.approx(4)
    assert expected_share(mine, mine, {mine: 4}) == pytest.approx(1)


def test_the_more_urgent_tier_goes_first() -> None:
    standard, bulk = (Tier.STANDARD, "a"), (Tier.BULK, "a")
    assert expected_share(standard, bulk, {}) == 0
    assert expected_share(bulk, standard, {}) >= 9
