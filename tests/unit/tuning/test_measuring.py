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
from worker.tuning.measuring import difference_db, measure
from worker.tuning.texts import text_of


def test_every_length_and_size_is_measured_within_the_slots() -> None:
    engine = static(base_s=0.02, per_item_s=0.01, slots=4)
    found = list(measure(engine, batches=[1, 4, 8, 4], lengths=[120, 40, 9_999], repeats=1))
    assert [(f.chars, f.batch) for f in found] == [
        (40, 1), (40, 4), (120, 1), (120, 4), (400, 1), (400, 4)
    ]  # fmt: skip
    assert all(f.difference_db is None and not f.fault for f in found)
    assert found[1].batch_s >= 0.06  # a sleep is never shorter, however busy the machine
    assert found[0].memory_mb > 10


def test_rows_of_an_autoregressive_engine_are_measured_to_their_last_chunk() -> None:
    engine = autoregressive(base_s=0.001, per_row_s=0)
    [found] = measure(engine, batches=[4], lengths=[200], repeats=1)
    assert found.first_chunk_s < found.batch_s / 2
    assert found.difference_db is None


class Breaking(SimulatedEngine):
    """Cannot hold more than two."""

    def step(self) -> Sequence[Chunk]:
        if len(self._held) > 2:
            raise MemoryError
        return super().step()


def test_larger_batches_than_one_that_failed_are_not_tried() -> None:
    engine = Breaking(base_s=0, per_item_s=0, slots=8)
    found = list(measure(engine, batches=[1, 2, 4, 8], lengths=[40, 120], repeats=1))
    assert [(f.batch, f.fault) for f in found] == [(1, ""), (2, ""), (4, "MemoryError")] * 2


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
    one, two = measure(engine, batches=[1, 2], lengths=[40], repeats=1)
    assert one.difference_db is None
    assert two.difference_db == pytest.approx(-60, abs=0.1)


def test_differences_in_db() -> None:
    tone: Samples = np.sin(np.arange(2400, dtype=np.float32))
    assert difference_db(tone, tone) is None
    assert difference_db(tone[:-1], tone) == 0.0
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
