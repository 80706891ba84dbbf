"""The documented state machines are those of the code, and they make sense."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from shared.jobs import ENDED, JOB_TRANSITIONS, JobState
from shared.segments import SEGMENT_TRANSITIONS, SegmentState
from shared.steps import STEP_TRANSITIONS, StepState
from shared.webhooks import DELIVERY_TRANSITIONS, DeliveryState

DOC = Path(__file__).parents[2] / "docs" / "state-machines.md"
MACHINES = {
    "Job": JOB_TRANSITIONS,
    "Segment": SEGMENT_TRANSITIONS,
    "Step": STEP_TRANSITIONS,
    "Delivery": DELIVERY_TRANSITIONS,
}


@pytest.mark.parametrize("title", MACHINES)
def test_the_document_lists_exactly_the_moves_of_the_code(title: str) -> None:
    section = DOC.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    listed = {}
    for row in rows:
        state, moves = row.strip("| ").split(" | ")
        listed[state.strip("`")] = {m.strip("` ") for m in moves.split(",")} - {"—"}
    assert listed == {str(k): {str(v) for v in vs} for k, vs in MACHINES[title].items()}


@pytest.mark.parametrize(
    ("machine", "states"),
    [
        (JOB_TRANSITIONS, JobState),
        (SEGMENT_TRANSITIONS, SegmentState),
        (STEP_TRANSITIONS, StepState),
        (DELIVERY_TRANSITIONS, DeliveryState),
    ],
)
def test_every_state_has_its_moves(
    machine: Mapping[StrEnum, frozenset[StrEnum]], states: type[StrEnum]
) -> None:
    assert set(machine) == set(states)


def test_a_live_job_can_always_fail_or_be_cancelled_and_an_ended_one_never() -> None:
    for state, moves in JOB_TRANSITIONS.items():
        if state in ENDED:
            assert JobState.CANCELLED not in moves
        else:
            assert {JobState.FAILED, JobState.CANCELLED} <= moves
