"""The batching policy as its users see it: who goes, who waits, and for how long."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.batching.policy import Decision, Held, Policy, TierLimits, Waiting

LIMITS = {
    "rush": TierLimits(max_batch=4, max_wait_s=0.0),
    "standard": TierLimits(max_batch=8, max_wait_s=0.05),
    "bulk": TierLimits(max_batch=8, max_wait_s=0.2),
}
NOW = 1_000.0


def policy(slots: int = 8) -> Policy:
    return Policy(slots=slots, limits=LIMITS)


def sentence(name: str, **changes: object) -> Waiting:
    plain = Waiting(id=name, tier="standard", due_at=NOW, chars=80, arrived_s=NOW)
    return replace(plain, **changes)  # type: ignore[arg-type]


def crowd(count: int, **changes: object) -> list[Waiting]:
    return [sentence(f"s{i}", due_at=NOW + i, **changes) for i in range(count)]


def decide(
    waiting: list[Waiting],
    held: list[Held] | None = None,
    *,
    slots: int = 8,
    may_arrive: int = 0,
    now_s: float = NOW,
) -> Decision:
    return policy(slots).decide(waiting, held or [], may_arrive=may_arrive, now_s=now_s)


def test_who_came_first_goes_first_whoever_is_due_earlier() -> None:
    """given a flood that is due earlier / then a newcomer sent before it is not overtaken here."""
    sent = sentence("sent", due_at=NOW + 9, arrived_s=NOW - 2)
    flood = sentence("flood", due_at=NOW + 1, arrived_s=NOW - 1)
    assert decide([flood, sent], slots=1).admit == ("sent",)


def test_of_those_that_came_together_the_earliest_due_goes_first() -> None:
    late, early = sentence("late", due_at=NOW + 9), sentence("early", due_at=NOW + 1)
    assert decide([late, early], slots=1).admit == ("early",)


def test_rush_goes_before_what_is_due_earlier() -> None:
    bulk = sentence("bulk", tier="bulk", due_at=NOW - 100)
    rush = sentence("rush", tier="rush", due_at=NOW + 2)
    assert decide([bulk, rush], slots=1).admit == ("rush",)


def test_a_mixed_batch_obeys_its_strictest_member() -> None:
    waiting = [sentence("rush", tier="rush"), *crowd(10)]
    assert len(decide(waiting).admit) == 4


def test_bulk_does_not_fill_a_busy_engine_beyond_what_rush_allows() -> None:
    held = [Held("bulk")] * 4
    assert decide([sentence("rush", tier="rush"), *crowd(3)], held) == Decision()
    assert decide([sentence("rush", tier="rush"), *crowd(3)], held[:3]).admit == ("rush",)


def test_rush_cannot_starve_the_others_for_ever() -> None:
    waiting = [
        sentence("rush", tier="rush"),
        sentence("old", tier="bulk", arrived_s=NOW - 6, due_at=NOW + 9_999),
    ]
    assert decide(waiting, slots=1).admit == ("old",)


def test_an_idle_engine_waits_for_a_batch_to_fill_but_not_longer_than_the_tier_allows() -> None:
    waiting = crowd(3)
    first = decide(waiting, may_arrive=5)
    assert first.admit == ()
    assert first.wait_s == pytest.approx(0.05)
    assert len(decide(waiting, may_arrive=5, now_s=NOW + 0.0501).admit) == 3


def test_nobody_waits_for_senders_that_do_not_exist() -> None:
    assert len(decide(crowd(3), may_arrive=0).admit) == 3


def test_a_full_batch_goes_at_once() -> None:
    assert len(decide(crowd(20), may_arrive=5).admit) == 8


def test_rush_never_waits_for_company() -> None:
    assert decide([sentence("rush", tier="rush")], may_arrive=9).admit == ("rush",)


def test_a_busy_engine_is_refilled_at_once() -> None:
    assert decide(crowd(1), [Held("standard")], may_arrive=9).admit == ("s0",)


def test_sentences_of_like_length_are_batched_before_others() -> None:
    waiting = [
        sentence("lead", chars=100, due_at=NOW),
        sentence("tiny", chars=5, due_at=NOW + 1),
        sentence("like", chars=110, due_at=NOW + 2),
    ]
    assert decide(waiting, slots=2).admit == ("lead", "like")
    assert decide(waiting).admit == ("lead", "like", "tiny")


def test_a_long_sentence_does_not_slow_rush_down() -> None:
    waiting = [sentence("rush", tier="rush", chars=20), sentence("long", chars=300)]
    assert decide(waiting).admit == ("rush",)


def test_a_long_rush_sentence_still_goes_before_bulk() -> None:
    waiting = [
        sentence("a", tier="rush", chars=20, due_at=NOW),
        sentence("b", tier="rush", chars=300, due_at=NOW + 1),
        sentence("c", tier="bulk", chars=20),
    ]
    assert decide(waiting, slots=2).admit == ("a", "b")


def test_a_suspect_runs_alone() -> None:
    suspect = sentence("suspect", alone=True, due_at=NOW - 1)
    assert decide([suspect, *crowd(3)]).admit == ("suspect",)
    assert decide([suspect, *crowd(3)], [Held("standard")]) == Decision()
    assert decide(crowd(3), [Held("standard", alone=True)]) == Decision()
    assert "suspect" not in decide([replace(suspect, due_at=NOW + 99), *crowd(3)]).admit


def test_different_parameters_never_share_a_batch() -> None:
    waiting = [sentence("a", group="x"), sentence("b", group="y", due_at=NOW + 1)]
    assert decide(waiting).admit == ("a",)
    assert decide(waiting[1:], [Held("standard", group="x")]) == Decision()


def test_limits_outside_what_a_batch_can_be_are_refused() -> None:
    for wrong in ({"max_batch": 0}, {"max_batch": 9}, {"max_wait_s": -1}, {"max_wait_s": 1e999}):
        with pytest.raises(ValueError, match="must"):
            TierLimits(**wrong)  # type: ignore[arg-type]


tiers = st.sampled_from(["rush", "standard", "bulk", "unheard-of"])
groups = st.sampled_from(["", "", "g"])
waitings = st.lists(
    st.builds(
        Waiting,
        id=st.uuids().map(str),
        tier=tiers,
        due_at=st.floats(-1e6, 1e6),
        chars=st.integers(1, 400),
        arrived_s=st.floats(NOW - 20, NOW),
        group=groups,
        alone=st.sampled_from([False, False, False, True]),
    ),
    max_size=20,
    unique_by=lambda w: w.id,
)
helds = st.lists(st.builds(Held, tier=tiers, group=st.just("")), max_size=8)


def max_batch(tier: str) -> int:
    return LIMITS.get(tier, TierLimits()).max_batch


@given(waitings, helds, st.integers(1, 8), st.integers(0, 20))
def test_a_decision_admits_only_what_waits_and_what_everybody_in_the_batch_allows(
    waiting: list[Waiting], held: list[Held], slots: int, may_arrive: int
) -> None:
    decision = policy(slots).decide(waiting, held, may_arrive=may_arrive, now_s=NOW)
    known = {w.id: w for w in waiting}
    batch = [known[i] for i in decision.admit]
    assert len(set(decision.admit)) == len(batch)
    assert not (batch and decision.wait_s)
    if batch:
        size = len(held) + len(batch)
        assert size <= min([slots, *(max_batch(m.tier) for m in [*held, *batch])])
        assert len({m.group for m in [*held, *batch]}) == 1
        assert size == 1 or not any(w.alone for w in batch)


@given(waitings, st.integers(1, 8))
def test_an_idle_engine_with_no_more_senders_always_takes_the_first_in_order(
    waiting: list[Waiting], slots: int
) -> None:
    decision = policy(slots).decide(waiting, [], may_arrive=0, now_s=NOW)
    assert bool(decision.admit) == bool(waiting)
    fresh = [w for w in waiting if NOW - w.arrived_s <= 5]
    if fresh and len(fresh) == len(waiting):
        urgent = [w for w in waiting if w.tier == "rush"] or waiting
        assert decision.admit[0] in {
            w.id for w in urgent if w.arrived_s == min(u.arrived_s for u in urgent)
        }


@given(waitings, helds, st.integers(1, 8), st.randoms(use_true_random=False))
def test_the_order_of_arrival_in_the_list_does_not_matter(
    waiting: list[Waiting], held: list[Held], slots: int, random: object
) -> None:
    shuffled = list(waiting)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    decide_once = [
        policy(slots).decide(w, held, may_arrive=3, now_s=NOW) for w in (waiting, shuffled)
    ]
    assert decide_once[0] == decide_once[1]


@given(waitings, st.integers(1, 8), st.integers(1, 20))
def test_work_is_done_in_the_end_and_never_waits_longer_than_its_tier_allows(
    waiting: list[Waiting], slots: int, may_arrive: int
) -> None:
    now_s, left, turns = NOW, list(waiting), 0
    while left:
        decision = policy(slots).decide(left, [], may_arrive=may_arrive, now_s=now_s)
        if decision.wait_s is not None:
            assert 0 < decision.wait_s <= 0.2 + 1e-9  # of clocks at a thousand seconds
            now_s += decision.wait_s + 1e-6
        else:
            assert decision.admit
            left = [w for w in left if w.id not in decision.admit]
        turns += 1
        assert turns <= 2 * len(waiting) + 1
