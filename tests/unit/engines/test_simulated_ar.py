"""The simulated autoregressive device: rows of their own length, chunks while they run."""

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.hosts import utterance
from worker.engines.base import Chunk
from worker.engines.simulated_ar import CHUNK_STEPS, SPREAD, SimulatedArEngine, build, steps_of
from worker.engines.simulated_device import RATE_HZ


def run(engine: SimulatedArEngine, *, finals: int) -> list[list[Chunk]]:
    steps = list[list[Chunk]]()
    while finals:
        steps.append(list(engine.step()))
        finals -= sum(chunk.final for chunk in steps[-1])
    return steps


def test_a_step_takes_its_base_and_a_share_for_each_row_and_no_cpu() -> None:
    engine = build(base_s=0.1, per_row_s=0.05)
    engine.admit([utterance("x" * 90, id=str(n)) for n in range(4)])
    wall_s, cpu_s = time.monotonic(), time.process_time()
    engine.step()
    assert time.monotonic() - wall_s >= 0.3
    assert time.process_time() - cpu_s < 0.1


def test_chunks_come_out_while_rows_run_and_a_short_one_leaves_first() -> None:
    engine = build(base_s=0, per_row_s=0)
    engine.admit([utterance("x" * 300, id="long"), utterance("x" * 30, id="short")])
    steps = run(engine, finals=2)
    told = [(chunk.utterance_id, chunk.final) for chunks in steps for chunk in chunks]
    assert told.index(("short", True)) < told.index(("long", True))
    assert told.count(("long", False)) == (steps_of("x" * 300, 1) - 1) // CHUNK_STEPS
    assert len(steps) == steps_of("x" * 300, 1)


def test_a_row_that_joins_later_sounds_as_it_does_alone() -> None:
    def spoken(chunks: list[list[Chunk]]) -> np.ndarray:
        return np.concatenate([c.samples for step in chunks for c in step if c.utterance_id == "b"])

    alone, joined = build(base_s=0, per_row_s=0), build(base_s=0, per_row_s=0)
    alone.admit([utterance("y" * 100, id="b", seed=7)])
    joined.admit([utterance("x" * 300, id="a")])
    for _ in range(5):
        joined.step()
    joined.admit([utterance("y" * 100, id="b", seed=7)])
    assert np.array_equal(spoken(run(alone, finals=1)), spoken(run(joined, finals=2)))


@given(st.integers(1, 400), st.integers(0, 2**63))
def test_length_follows_the_text_with_the_seeds_spread(chars: int, seed: int) -> None:
    steps = steps_of("x" * chars, seed)
    assert steps == steps_of("y" * chars, seed)
    assert max(1, chars / 3 * (1 - SPREAD) - 1) <= steps <= chars / 3 * (1 + SPREAD) + 1


def test_audio_is_about_as_long_as_speech() -> None:
    engine = build(base_s=0, per_row_s=0)
    engine.admit([utterance("x" * 150, id=str(n), seed=n) for n in range(8)])
    samples = sum(len(c.samples) for step in run(engine, finals=8) for c in step)
    assert abs(samples / RATE_HZ / 8 - 10) < 10 * SPREAD


def test_a_dropped_row_frees_its_slot() -> None:
    engine = build(base_s=0, per_row_s=0)
    engine.admit([utterance("x" * 300, id="1"), utterance("x" * 30, id="2")])
    engine.drop(["1", "unknown"])
    assert {c.utterance_id for step in run(engine, finals=1) for c in step} == {"2"}
    assert list(engine.step()) == []
