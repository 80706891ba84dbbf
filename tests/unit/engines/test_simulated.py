"""The simulated device takes its time, uses no CPU for it, and sounds as long as speech."""

import time

import numpy as np

from tests.hosts import utterance
from worker.engines.simulated import build
from worker.engines.simulated_device import RATE_HZ


def test_a_batch_takes_its_base_and_a_share_for_each_member_and_no_cpu() -> None:
    engine = build(base_s=0.1, per_item_s=0.05)
    engine.admit([utterance(id=str(n)) for n in range(4)])
    wall_s, cpu_s = time.monotonic(), time.process_time()
    chunks = engine.step()
    assert time.monotonic() - wall_s >= 0.3
    assert time.process_time() - cpu_s < 0.1
    assert [c.utterance_id for c in chunks] == ["0", "1", "2", "3"]
    assert all(c.final for c in chunks)


def test_audio_is_as_long_as_speech_and_equal_for_equal_texts() -> None:
    engine = build(base_s=0, per_item_s=0)
    engine.admit([utterance("x" * 150, id="1"), utterance("y" * 150, id="2")])
    first, second = engine.step()
    assert len(first.samples) == 10 * RATE_HZ
    assert np.array_equal(first.samples, second.samples)
    assert first.samples.dtype == np.float32


def test_dropped_utterances_are_not_spoken() -> None:
    engine = build(base_s=0, per_item_s=0)
    engine.admit([utterance(id="1"), utterance(id="2")])
    engine.drop(["1"])
    assert [c.utterance_id for c in engine.step()] == ["2"]
    assert list(engine.step()) == []
