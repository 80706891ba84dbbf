"""Size-aware filling: little padding, nobody starved, and nobody late because of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planned import FOUR_CHAPTERS, sentences
from worker.batching.policy import Policy, Waiting
from worker.batching.sizes import MOST_PADDING, bounded, closest, padding_chars

BATCH, DEPTH = 8, 24
STEP_S = 0.37
sizes = st.lists(st.integers(1, 400), min_size=1, max_size=60)


def utterances(lengths: Sequence[int], due_at: Callable[[int], float] = float) -> list[Waiting]:
    return [
        Waiting(str(n), "bulk", due_at(n), chars, arrived_s=0.0) for n, chars in enumerate(lengths)
    ]


def batches(
    queue: Sequence[Waiting], *, depth: int = DEPTH, step_s: float = 0.0, pads: bool = False
) -> list[list[Waiting]]:
    """What a static engine would run, `depth` of the queue being in front of it at a time."""
    policy = Policy(slots=BATCH, pads=pads)
    pool, made = list[Waiting](), list[list[Waiting]]()
    rest = list(queue)
    while rest or pool:
        pool, rest = pool + rest[: depth - len(pool)], rest[depth - len(pool) :]
        now_s = len(made) * step_s
        admitted = policy.decide(
            pool, [], may_arrive=0, now_s=0.0, due_clock_s=now_s, step_s=step_s
        ).admit
        made.append([w for w in pool if w.id in admitted])
        pool = [w for w in pool if w.id not in admitted]
    return made


def waste(made: Sequence[Sequence[Waiting]]) -> int:
    return sum(padding_chars([w.chars for w in batch]) for batch in made)


def arrival(queue: Sequence[Waiting]) -> list[Sequence[Waiting]]:
    return [queue[i : i + BATCH] for i in range(0, len(queue), BATCH)]


def test_mixed_lengths_of_a_novel_waste_less_than_half_of_what_arrival_order_does() -> None:
    novel = utterances([len(text) for text in sentences(Path(FOUR_CHAPTERS).read_text())])
    assert waste(batches(novel)) <= 0.5 * waste(arrival(novel))


@pytest.mark.parametrize("seed", range(5))
def test_so_do_sizes_of_any_even_spread(seed: int) -> None:
    lengths = [1 + (n * n * 7919 + seed * 104729) % 400 for n in range(400)]
    mixed = utterances(lengths)
    assert waste(batches(mixed)) <= 0.5 * waste(arrival(mixed))


@given(sizes)
def test_everything_is_spoken_once_and_no_batch_is_smaller_than_it_need_be(
    lengths: list[int],
) -> None:
    made = batches(utterances(lengths))
    assert sorted(int(w.id) for batch in made for w in batch) == list(range(len(lengths)))
    assert all(len(batch) == BATCH for batch in made[:-1])


@given(sizes)
def test_the_first_in_order_is_never_passed_over(lengths: list[int]) -> None:
    spoken = set[str]()
    for batch in batches(utterances(lengths)):
        first = next(str(n) for n in range(len(lengths)) if str(n) not in spoken)
        assert first in {w.id for w in batch}
        spoken |= {w.id for w in batch}


@given(
    st.lists(st.tuples(st.integers(1, 400), st.floats(0.1, 4.0)), min_size=1, max_size=DEPTH),
)
def test_nobody_is_late_who_would_be_in_time_in_plain_order(
    asked: list[tuple[int, float]],
) -> None:
    asked.sort(key=lambda pair: pair[1])
    queue = utterances([chars for chars, _ in asked], lambda n: asked[n][1])
    ended_s = {
        w.id: (turn + 1) * STEP_S
        for turn, batch in enumerate(batches(queue, step_s=STEP_S))
        for w in batch
    }
    for position, waiting in enumerate(queue):
        if (position // BATCH + 1) * STEP_S <= waiting.due_at:
            assert ended_s[waiting.id] <= waiting.due_at + 1e-9


def test_a_due_time_comes_before_a_good_fit() -> None:
    lengths = [100, 5, *[100] * 8]
    relaxed = Policy(slots=2).decide(
        utterances(lengths, lambda n: 9.0 + n), [], may_arrive=0, now_s=0, step_s=1.0
    )
    assert relaxed.admit == ("0", "2")
    pressed = Policy(slots=2).decide(
        utterances(lengths, lambda n: 1.0 if n < 2 else 9.0 + n),
        [],
        may_arrive=0,
        now_s=0,
        step_s=1.0,
    )
    assert pressed.admit == ("0", "1")


@given(st.integers(1, 400), st.lists(st.integers(1, 400), max_size=12), st.integers(-1, 9))
def test_no_other_choice_of_neighbours_wastes_less(lead: int, others: list[int], room: int) -> None:
    first, *rest = utterances([lead, *others])
    chosen = closest(first, rest, room)
    assert sorted(w.id for w in chosen) == sorted(w.id for w in rest)
    if 0 < room < len(rest):
        wasted = padding_chars([lead, *(w.chars for w in chosen[:room])])
        by_size = sorted(others)
        rivals = [by_size[i : i + room] for i in range(len(by_size) - room + 1)]
        assert wasted == min(padding_chars([lead, *rival]) for rival in rivals)


def excess(sizes: Sequence[int]) -> float:
    """Padding beyond the slack of twenty characters, less what the bound allows."""
    longest = max(sizes)
    return sum(max(0, longest - chars - 20) for chars in sizes) - MOST_PADDING * sum(sizes)


def test_a_long_one_and_many_short_ones_do_not_share_a_batch_of_an_engine_that_pads() -> None:
    lengths = [*[10] * 7, 400]
    assert [len(batch) for batch in batches(utterances(lengths))] == [8]
    assert [len(batch) for batch in batches(utterances(lengths), pads=True)] == [7, 1]


def test_a_part_goes_at_once_where_the_whole_would_have() -> None:
    """given company that could still come / then nobody waits for it beside what is full."""
    full = utterances([*[10] * 7, 400])
    decision = Policy(slots=8, pads=True).decide(full, [], may_arrive=8, now_s=0.0)
    assert len(decision.admit) == 7


@given(sizes)
def test_padding_is_bounded_and_everything_is_spoken_once(lengths: list[int]) -> None:
    made = batches(utterances(lengths), pads=True)
    assert sorted(int(w.id) for batch in made for w in batch) == list(range(len(lengths)))
    assert all(excess([w.chars for w in batch]) <= 0 for batch in made)


@given(sizes, st.integers(0, 59))
def test_no_other_part_of_a_batch_within_the_bound_is_larger(lengths: list[int], n: int) -> None:
    batch = utterances(lengths[:9])
    lead = batch[n % len(batch)]
    part = bounded(lead, batch)
    assert lead in part
    assert part == [w for w in batch if w in part]
    for mask in range(1 << len(batch)):
        rival = [w for place, w in enumerate(batch) if mask >> place & 1]
        if lead in rival and excess([w.chars for w in rival]) <= 0:
            assert len(rival) <= len(part)


@given(
    st.lists(st.tuples(st.integers(1, 400), st.floats(0.1, 4.0)), min_size=1, max_size=DEPTH),
)
def test_nobody_is_late_for_the_bound(asked: list[tuple[int, float]]) -> None:
    asked.sort(key=lambda pair: pair[1])
    queue = utterances([chars for chars, _ in asked], lambda n: asked[n][1])
    ended_s = {
        w.id: (turn + 1) * STEP_S
        for turn, batch in enumerate(batches(queue, step_s=STEP_S, pads=True))
        for w in batch
    }
    for position, waiting in enumerate(queue):
        if (position // BATCH + 1) * STEP_S <= waiting.due_at:
            assert ended_s[waiting.id] <= waiting.due_at + 1e-9


def test_the_bound_costs_a_novel_neither_batches_nor_padding() -> None:
    novel = utterances([len(text) for text in sentences(Path(FOUR_CHAPTERS).read_text())])
    free, bound = batches(novel), batches(novel, pads=True)
    assert len(bound) <= len(free)
    assert waste(bound) <= waste(free)
