"""Measuring real (simulated) engines over batch sizes and lengths."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.engines.base import Chunk, Samples
from worker.engines.simulated import SimulatedEngine
from worker.engines.simulated import build as static
from worker.engines.simulated_ar import build as autoregressive
from worker.tuning.measuring import difference_db, measure, mixture
from worker.tuning.plan import Plan
from worker.tuning.texts import LEAST_CHARS, text_of


def plan(batches: Sequence[int], lengths: Sequence[int]) -> Plan:
    return Plan(tuple(batches), tuple(lengths))


def test_every_length_and_size_is_measured_and_last_a_mixture_of_lengths() -> None:
    engine = static(base_s=0.02, per_item_s=0.01, slots=4)
    found = list(measure(engine, plan([1, 4], [40, 120, 400]), repeats=1))
    assert [(f.chars, f.batch, f.mixed) for f in found] == [
        (40, 1, False), (40, 4, False), (120, 1, False), (120, 4, False),
        (400, 1, False), (400, 4, False), (400, 4, True),
    ]  # fmt: skip
    assert all(f.difference_db is None and not f.fault for f in found)
    assert found[1].batch_s >= 0.06  # a sleep is never shorter, however busy the machine
    assert found[0].memory_mb > 10


def test_rows_of_an_autoregressive_engine_are_measured_to_their_last_chunk() -> None:
    engine = autoregressive(base_s=0.001, per_row_s=0)
    found, _mixed = measure(engine, plan([4], [200]), repeats=1)
    assert found.first_chunk_s < found.batch_s / 2
    assert found.difference_db is None


def test_the_members_of_a_mixed_batch_are_as_different_as_the_lengths_allow() -> None:
    said = list[int]()

    class Noting(SimulatedEngine):
        def step(self) -> Sequence[Chunk]:
            said[:] = [len(u.text) for u in self._held]
            return super().step()

    engine = Noting(base_s=0, per_item_s=0, slots=8)
    list(measure(engine, plan([2], [40, 120, 240, 400]), repeats=1))
    assert max(said) > 300
    assert min(said) <= 40


@given(st.lists(st.integers(LEAST_CHARS, 400), min_size=1, max_size=9, unique=True))
def test_a_mixture_holds_every_length_and_begins_with_the_furthest_apart(
    lengths: list[int],
) -> None:
    turns = mixture(lengths)
    assert len(turns) >= 2
    assert set(turns) >= set(lengths)
    assert turns[0] == max(lengths)
    assert turns[1] == min(turns)


class Breaking(SimulatedEngine):
    """Cannot hold more than two."""

    def step(self) -> Sequence[Chunk]:
        if len(self._held) > 2:
            raise MemoryError
        return super().step()


def test_larger_batches_than_one_that_failed_are_not_tried() -> None:
    engine = Breaking(base_s=0, per_item_s=0, slots=8)
    found = list(measure(engine, plan([1, 2, 4, 8], [40, 120]), repeats=1))
    each = [(1, ""), (2, ""), (4, "MemoryError")]
    assert [(f.batch, f.fault) for f in found] == [*each, *each, *each[1:]]


class Short(SimulatedEngine):
    """Cannot say what is longer than 300 characters."""

    def step(self) -> Sequence[Chunk]:
        if any(len(u.text) > 300 for u in self._held):
            raise RuntimeError
        return super().step()


def test_a_text_that_fails_alone_is_a_finding_and_not_the_end() -> None:
    engine = Short(base_s=0, per_item_s=0, slots=8)
    found = list(measure(engine, plan([1, 2], [40, 400]), repeats=1))
    assert [(f.chars, f.batch, f.fault) for f in found] == [
        (40, 1, ""), (40, 2, ""), (400, 1, "RuntimeError"), (400, 2, "RuntimeError")
    ]  # fmt: skip


class Mute(SimulatedEngine):
    """Finishes without a sample."""

    def step(self) -> Sequence[Chunk]:
        return [Chunk(c.utterance_id, c.samples[:0], final=True) for c in super().step()]


def test_an_engine_that_says_nothing_has_a_fault() -> None:
    [found] = measure(Mute(base_s=0, per_item_s=0, slots=1), plan([1], [40]), repeats=1)
    assert found.fault == "UtteranceError"


class Drifting(SimulatedEngine):
    """Sounds a little different in company."""

    def step(self) -> Sequence[Chunk]:
        company = len(self._held)
        return [
            Chunk(c.utterance_id, c.samples * np.float32(1 + 1e-3 * (company - 1)), final=True)
            for c in super().step()
        ]


def test_what_company_does_to_the_sound_is_measured() -> None:
    engine = Drifting(base_s=0, per_item_s=0, slots=8)
    one, two, mixed = measure(engine, plan([1, 2], [40]), repeats=1)
    assert one.difference_db is None
    assert two.difference_db == pytest.approx(-60, abs=0.1)
    assert mixed.difference_db == pytest.approx(-60, abs=0.1)


class Leaking(SimulatedEngine):
    """Sounds different only beside a longer text: padding leaks into what is heard."""

    def step(self) -> Sequence[Chunk]:
        longest = max((len(u.text) for u in self._held), default=0)
        padded = {u.id for u in self._held if len(u.text) < longest * 0.6}
        return [
            Chunk(
                c.utterance_id,
                c.samples * np.float32(1 - 0.1 * (c.utterance_id in padded)),
                final=True,
            )
            for c in super().step()
        ]


@pytest.mark.parametrize("lengths", [[40, 400], [240]], ids=["two lengths", "one length"])
def test_what_only_longer_company_does_to_the_sound_is_measured(lengths: list[int]) -> None:
    engine = Leaking(base_s=0, per_item_s=0, slots=8)
    found = list(measure(engine, plan([1, 2, 8], lengths), repeats=1))

    assert all(f.difference_db is None for f in found if not f.mixed)
    assert [f.difference_db for f in found if f.mixed] == [pytest.approx(-20, abs=0.1)] * 2


def test_differences_in_db() -> None:
    tone: Samples = np.sin(np.arange(2400, dtype=np.float32))
    assert difference_db(tone, tone) is None
    assert difference_db(tone[:-1], tone) == 0.0
    broken = tone.copy()
    broken[7] = np.nan
    assert [difference_db(*pair) for pair in ((broken, tone), (tone, broken))] == [0.0, 0.0]
    assert difference_db(broken, broken) == 0.0
    assert difference_db(tone * np.float32(1.1), tone) == pytest.approx(-20, abs=0.01)


@given(st.sampled_from(["en", "zh", "xx"]), st.integers(8, 400), st.integers(0, 20))
def test_texts_are_of_the_length_asked_for(language: str, chars: int, number: int) -> None:
    text = text_of(language, chars, number)
    assert chars / 2 - 8 <= len(text) <= chars
    assert any(c.isalnum() for c in text)
    assert text[-1] in ".。"


def test_texts_differ() -> None:
    for language in ("en", "zh"):
        assert len({text_of(language, 120, n) for n in range(8)}) == 8
