"""A step: a piece of work on a job that is not synthesis, claimed and leased like a segment."""

from enum import StrEnum


class StepKind(StrEnum):
    """What a step does. Each kind is the name of its Celery queue."""

    PLAN = "plan"  # split the text into segments
    ASSEMBLE = "assemble"  # stitch and encode one part; publish the manifest and end the job
    INSPECT = "inspect"  # look into a finished file


class StepState(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    DISPATCHED = "dispatched"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_LATE = frozenset({StepState.DONE, StepState.FAILED})  # by the newest token, past its lease

STEP_TRANSITIONS: dict[StepState, frozenset[StepState]] = {
    StepState.PENDING: frozenset({StepState.DISPATCHED, StepState.CANCELLED}) | _LATE,
    StepState.DISPATCHED: frozenset({StepState.LEASED, StepState.PENDING, StepState.CANCELLED})
    | _LATE,
    StepState.LEASED: frozenset(
        {
            StepState.LEASED,
            StepState.DONE,
            StepState.PENDING,
            StepState.FAILED,
            StepState.CANCELLED,
        }
    ),
    StepState.DONE: frozenset(),
    StepState.FAILED: frozenset(),
    StepState.CANCELLED: frozenset(),
}
