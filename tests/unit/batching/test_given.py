"""Late work keeps its share beside a flood of rush, on any device, and takes no more for it."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.pools import SHARED_POOL
from worker.batching.given import LATE_SHARE, Given, is_late
from worker.batching.policy import Held, Policy, TierLimits, Waiting

LIMITS = {"rush": TierLimits(4, 0.0), "standard": TierLimits(8, 0.05), "bulk": TierLimits(8, 0.2)}
DUE_CLOCK_S = 1e6
LATE_DUE_S, EARLY_DUE_S = DUE_CLOCK_S - 1, DUE_CLOCK_S + 1e6


def waiting(
    id_: str,
    tier: str = "bulk",
    due_at: float = LATE_DUE_S,
    arrived_s: float = 0.0,
    chars: int = 80,
) -> Waiting:
    return Waiting(id_, tier, due_at, chars, arrived_s)


@dataclass
class Host:
    """A device with rush and others in front of it, always as deep as a node's."""

    policy: Policy
    step_s: float
    tier: str = "bulk"
    due_at: float = LATE_DUE_S
    chars: int = 80

    def share_of_others(self, steps: int, *, rush_every: int = 1) -> float:
        """Their part of what is spoken in so many batches; rush is there at every n-th."""
        now_s, number, spoken, account = 0.0, 0, {"rush": 0, self.tier: 0}, Given()
        queue: list[Waiting] = []
        for step in range(steps):
            wanted = {"rush": 16 * (step % rush_every == 0), self.tier: 18}
            for tier, depth in wanted.items():
                here = sum(w.tier == tier for w in queue)
                for _ in range(depth - here):
                    number += 1
                    rush = tier == "rush"
                    due_at, chars = (EARLY_DUE_S, 80) if rush else (self.due_at, self.chars)
                    queue.append(waiting(f"{number:09d}", tier, due_at, now_s, chars))
            decision = self.policy.decide(
                queue, [], may_arrive=0, now_s=now_s, due_clock_s=DUE_CLOCK_S, given=account
            )
            account = account.after(queue, decision.admit, due_clock_s=DUE_CLOCK_S)
            for w in queue:
                if w.id in decision.admit:
                    spoken[w.tier] += w.chars
            queue = [w for w in queue if w.id not in decision.admit]
            now_s += self.step_s
        return spoken[self.tier] / sum(spoken.values())


@pytest.mark.parametrize("rush_batch", [4, 8])
@pytest.mark.parametrize("slots", [1, 8])
@pytest.mark.parametrize("chars", [10, 80, 400])
def test_late_work_has_its_share_beside_rush_on_a_device_that_patience_never_reaches(
    chars: int, slots: int, rush_batch: int
) -> None:
    limits = LIMITS | {"rush": TierLimits(rush_batch, 0.0)}
    host = Host(Policy(slots=slots, limits=limits, patience_s=1e9), 0.01, chars=chars)
    share = host.share_of_others(1_500)
    assert SHARED_POOL.late_bulk_share < share <= 1.6 * LATE_SHARE


def test_what_is_not_late_has_only_its_patience() -> None:
    host = Host(Policy(slots=8, limits=LIMITS), 0.01, due_at=EARLY_DUE_S)
    impatient = Host(Policy(slots=8, limits=LIMITS, late_share=0.0), 0.01, due_at=EARLY_DUE_S)
    assert host.share_of_others(1_000) == impatient.share_of_others(1_000) < LATE_SHARE


def test_late_work_that_has_plenty_never_goes_before_rush() -> None:
    """given late bulk that fills the device / when a rush sentence comes / then it goes next."""
    late = [waiting(f"b{n}", arrived_s=n * 1e-3) for n in range(18)]
    account = Given()
    for _ in range(20):
        admitted = Policy(8, LIMITS).decide(late, [], may_arrive=0, now_s=1.0).admit
        account = account.after(late, admitted, due_clock_s=DUE_CLOCK_S)
    queue = [*late, waiting("rush", "rush", EARLY_DUE_S, arrived_s=1.0)]
    decision = Policy(8, LIMITS).decide(
        queue, [], may_arrive=0, now_s=1.0, due_clock_s=DUE_CLOCK_S, given=account
    )
    assert decision.admit[0] == "rush"


def test_late_standard_work_has_its_turn_like_bulk_and_rush_has_none() -> None:
    assert is_late(waiting("s", "standard"), DUE_CLOCK_S)
    assert not is_late(waiting("r", "rush"), DUE_CLOCK_S)
    assert not is_late(waiting("b", due_at=EARLY_DUE_S), DUE_CLOCK_S)


def test_in_a_turn_the_line_keeps_its_order_up_to_the_last_late_one() -> None:
    """Who is next was decided where all that waits is seen; and who is passed over keeps a seat."""
    queue = [
        waiting("rush", "rush", EARLY_DUE_S),
        waiting("in time", "standard", EARLY_DUE_S, arrived_s=0.1),
        waiting("late", arrived_s=0.2),
        waiting("behind", "standard", EARLY_DUE_S, arrived_s=0.3),
    ]
    owed = Given(others_chars=1.0, all_chars=100.0)
    for held in ([], [Held("bulk")] * 5):
        policy = Policy(3 + len(held), LIMITS, slotwise=bool(held))
        decision = policy.decide(
            queue, held, may_arrive=0, now_s=1.0, due_clock_s=DUE_CLOCK_S, given=owed
        )
        assert decision.admit == ("in time", "late", "rush")


accounts = st.builds(Given, st.floats(0, 1e6), st.floats(1e6, 1e7))
crowds = st.lists(
    st.builds(
        Waiting,
        id=st.uuids().map(str),
        tier=st.sampled_from(["rush", "standard", "bulk", "unheard-of"]),
        due_at=st.floats(-1e6, 1e6),
        chars=st.integers(1, 400),
        arrived_s=st.floats(0, 1),
    ),
    max_size=12,
    unique_by=lambda w: w.id,
)


@given(accounts, crowds, st.data())
def test_an_account_moves_only_while_late_work_waits_and_towards_what_was_given(
    account: Given, crowd: list[Waiting], data: st.DataObject
) -> None:
    admitted = {w.id for w in crowd if data.draw(st.booleans())}
    after = account.after(crowd, admitted, due_clock_s=0.0)
    late = [w for w in crowd if is_late(w, 0.0)]
    if not late or not admitted:
        assert after == account
        return
    assert 0 <= after.others_chars <= after.all_chars
    before, now = (a.others_chars / a.all_chars for a in (account, after))
    spoken = {w.tier == "rush" for w in crowd if w.id in admitted}
    if spoken == {True}:
        assert now <= before
    if spoken == {False}:
        assert now >= before - 1e-9


@given(crowds)
def test_nobody_is_owed_anything_before_anything_was_given(crowd: list[Waiting]) -> None:
    assert not Given().owes(1.0)
    plain = Policy(8, LIMITS, late_share=0.0).decide(crowd, [], may_arrive=0, now_s=1.0)
    assert Policy(8, LIMITS).decide(crowd, [], may_arrive=0, now_s=1.0) == plain


def test_a_late_suspect_still_runs_alone() -> None:
    queue = [waiting("rush", "rush", EARLY_DUE_S), replace(waiting("suspect"), alone=True)]
    decision = Policy(8, LIMITS).decide(
        queue,
        [],
        may_arrive=0,
        now_s=1.0,
        due_clock_s=DUE_CLOCK_S,
        given=Given(others_chars=0.0, all_chars=10.0),
    )
    assert decision.admit == ("suspect",)
