"""What is measured of an engine by default, and what cannot be asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import UsageError
from shared.voices import EngineInfo
from worker.engines.simulated import device_info
from worker.tuning.plan import Plan, plan_for
from worker.tuning.texts import LEAST_CHARS


def info(slots: int, **changes: object) -> EngineInfo:
    return device_info("simulated", slots=slots).model_copy(update=changes)


@pytest.mark.parametrize(
    ("slots", "batches"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (3, (1, 2, 3)),
        (6, (1, 2, 4, 6)),
        (8, (1, 2, 4, 8)),
        (64, (1, 2, 4, 8)),
    ],
)
def test_the_usual_sizes_go_as_far_as_the_slots_and_no_batch_holds_more_than_eight(
    slots: int, batches: tuple[int, ...]
) -> None:
    assert plan_for(info(slots), batches=[], lengths=[]).batches == batches


@pytest.mark.parametrize(
    ("max_chars", "lengths"), [(400, (40, 120, 240, 400)), (240, (40, 120, 240)), (30, (30,))]
)
def test_the_usual_lengths_go_up_to_the_longest_that_is_planned(
    max_chars: int, lengths: tuple[int, ...]
) -> None:
    assert plan_for(info(8, max_chars=max_chars), batches=[], lengths=[]).lengths == lengths


def test_what_is_asked_for_is_measured_in_order() -> None:
    assert plan_for(info(8), batches=[4, 1], lengths=[300, 20]) == Plan((1, 4), (20, 300))


@pytest.mark.parametrize(
    ("batches", "lengths", "reason"),
    [
        ([16], [], "--batches: 16 is not possible: engine simulated takes batches of 1 to 8 sen"),
        ([1, 9], [], "9 is not possible"),
        ([2, 2], [], "--batches: 2 is named twice"),
        ([], [401], "--lengths: 401 is not possible: .* 8 to 400 characters"),
        ([], [LEAST_CHARS - 1], "not possible"),
        ([], [40, 40], "--lengths: 40 is named twice"),
    ],
)
def test_what_cannot_be_is_said_with_what_can(
    batches: list[int], lengths: list[int], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        plan_for(info(8), batches=batches, lengths=lengths)


def test_an_engine_of_one_slot_takes_one() -> None:
    with pytest.raises(UsageError, match=r"takes batches of 1 sentence$"):
        plan_for(info(1), batches=[2], lengths=[])


numbers = st.lists(st.integers(-5, 1000), max_size=4)


@given(st.integers(1, 20), st.integers(1, 500), st.integers(1, 20), numbers, numbers)
def test_whatever_is_planned_can_be_measured(
    slots: int, max_chars: int, min_chars: int, batches: list[int], lengths: list[int]
) -> None:
    engine = info(slots, max_chars=max_chars, min_chars=min_chars)
    try:
        plan = plan_for(engine, batches=batches, lengths=lengths)
    except UsageError:
        return
    assert plan.batches
    assert plan.lengths
    assert all(1 <= size <= min(slots, 8) for size in plan.batches)
    assert all(chars <= max_chars for chars in plan.lengths)
    assert list(plan.batches) == sorted(set(plan.batches))
    assert list(plan.lengths) == sorted(set(plan.lengths))
