"""Engines that advance row by row: a free slot is filled at once, and rush takes the first one."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.batching.policy import Decision, Held, Policy, TierLimits, Waiting

LIMITS = {
    "rush": TierLimits(max_batch=4, max_wait_s=0.0),
    "bulk": TierLimits(max_batch=8, max_wait_s=0.2),
}
SLOTWISE = Policy(slots=8, limits=LIMITS, slotwise=True)


def waiting(id_: str, tier: str = "bulk", due_at: float = 0.0, chars: int = 80) -> Waiting:
    return Waiting(id_, tier, due_at, chars, arrived_s=0.0)


def decide(queue: list[Waiting], held: list[Held], *, now_s: float = 0.0) -> Decision:
    return SLOTWISE.decide(queue, held, may_arrive=8, now_s=now_s)


def test_a_free_slot_is_filled_at_once() -> None:
    assert decide([waiting("a")], [Held("bulk")] * 7).admit == ("a",)


def test_an_idle_engine_does_not_wait_for_company() -> None:
    assert decide([waiting("a")], []).admit == ("a",)


def test_rush_takes_the_next_free_slot_however_full_the_engine_is() -> None:
    queue = [waiting("bulk"), waiting("rush", "rush", due_at=1e9)]
    assert decide(queue, [Held("bulk")] * 7).admit == ("rush",)
    assert decide(queue, [Held("bulk")] * 8) == Decision()


def test_several_rush_ones_enter_together() -> None:
    queue = [waiting(f"r{n}", "rush", due_at=n) for n in range(3)]
    assert decide(queue, [Held("bulk")] * 6).admit == ("r0", "r1")


def test_beside_rush_the_others_fill_every_slot() -> None:
    queue = [waiting(f"b{n}", due_at=n) for n in range(8)]
    assert decide(queue, [Held("rush"), *[Held("bulk")] * 6]).admit == ("b0",)
    assert decide(queue, [Held("rush")]).admit == tuple(f"b{n}" for n in range(7))


def test_a_batch_that_another_tier_bounds_stays_bounded_beside_rush() -> None:
    """A tier's largest batch may be one of quality: rush lifts nobody else's."""
    limits = LIMITS | {"bulk": TierLimits(max_batch=4, max_wait_s=0.2)}
    policy = Policy(slots=8, limits=limits, slotwise=True)
    queue = [waiting(f"b{n}", due_at=n) for n in range(8)]
    decision = policy.decide(queue, [Held("rush")], may_arrive=0, now_s=0.0)
    assert decision.admit == ("b0", "b1", "b2")
    full = policy.decide(queue, [Held("rush"), *[Held("bulk")] * 3], may_arrive=0, now_s=0.0)
    assert full == Decision()


@pytest.mark.parametrize("rush_every_s", [0.5, 2.0, 5.0])
def test_slots_stay_full_beside_a_stream_of_rush_rows(rush_every_s: float) -> None:
    """Rows of a device of 40 ms a step, 24 bulk rows always in sight, a rush row now and then."""
    step_s, rng = 0.04, Random(0)
    left: dict[str, tuple[str, int]] = {}
    queue: list[Waiting] = []
    number, used, rush_waits = 0, 0, list[int]()
    steps = 3_000
    for step in range(steps):
        if step % round(rush_every_s / step_s) == 0:
            queue.append(waiting(f"rush{step}", "rush", due_at=step))
        while sum(w.tier == "bulk" for w in queue) < 24:
            number += 1
            queue.append(waiting(f"b{number:06d}", due_at=number))
        held = [Held(tier) for tier, _ in left.values()]
        for id_ in decide(queue, held).admit:
            tier = "rush" if id_.startswith("rush") else "bulk"
            left[id_] = (tier, rng.randint(15, 60))
            if tier == "rush":
                rush_waits.append(step - int(id_.removeprefix("rush")))
        queue = [w for w in queue if w.id not in left]
        used += len(left)
        left = {id_: (tier, more - 1) for id_, (tier, more) in left.items() if more > 1}
    assert used / (8 * steps) >= 0.95
    assert max(rush_waits) <= 60  # no longer than until the next row is over


def test_sizes_do_not_matter() -> None:
    queue = [waiting("long", due_at=0, chars=400), waiting("short", due_at=1, chars=4)]
    assert decide(queue, [Held("bulk")] * 7).admit == ("long",)


@given(
    st.lists(st.integers(1, 30), min_size=20, max_size=120),
    st.integers(1, 8),
)
def test_no_slot_is_empty_while_something_waits(rows: list[int], slots: int) -> None:
    policy = Policy(slots=slots, limits=LIMITS, slotwise=True)
    queue = [waiting(str(n), due_at=n, chars=steps) for n, steps in enumerate(rows)]
    left: dict[str, int] = {}
    while queue or left:
        admitted = policy.decide(queue, [Held("bulk")] * len(left), may_arrive=0, now_s=0.0).admit
        left |= {w.id: w.chars for w in queue if w.id in admitted}
        queue = [w for w in queue if w.id not in admitted]
        assert len(left) == slots or not queue
        left = {id_: steps - 1 for id_, steps in left.items() if steps > 1}
