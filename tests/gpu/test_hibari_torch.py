"""hibari in torch: the same voice as the ONNX model, and a row sounds alike in any company.

Needs torch, so these tests are run on their own where it is installed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import SetupError
from tests.hosts import utterance
from worker.engines import hibari, registry
from worker.engines.base import Chunk, Samples, Utterance
from worker.engines.hibari_torch import HibariTorchEngine, build

TEXTS = (
    "No.",
    "The quick brown fox jumps over the lazy dog.",
    "It costs $5.50, and that is 3.10 more than it did in 1990.",
    "Where to?",
    (
        "My uncle was a man who could not wait, and when he had sown his flowers in the pots of "
        "his balcony, he would pull them by the leaves every morning to hurry on their growth."
    ),
    "Chapter 12.",
    "He said: “I will be back” (and so he was), at last; nobody had expected it, least of all she.",
)


@pytest.fixture(scope="module")
def engine() -> HibariTorchEngine:
    return build(device="cpu")


def ask(text: str, **changes: Any) -> Utterance:
    return utterance(text, voice="heart", **changes)


def speak(engine: HibariTorchEngine, batch: Sequence[Utterance]) -> dict[str, Chunk]:
    engine.admit(batch)
    return {chunk.utterance_id: chunk for chunk in engine.step()}


def alone(engine: HibariTorchEngine, wanted: Utterance) -> Samples:
    return speak(engine, [wanted])[wanted.id].samples


requests = st.builds(
    lambda text, speed, seed: (text, speed, seed),
    st.sampled_from(TEXTS),
    st.sampled_from([0.5, 0.9, 1.0, 1.3, 2.0]),
    st.integers(0, 2**63 - 1),
)


@settings(max_examples=12, deadline=None)
@given(st.lists(requests, min_size=2, max_size=8))
def test_a_batch_gives_every_row_the_bits_it_has_alone(
    engine: HibariTorchEngine, wanted: list[tuple[str, float, int]]
) -> None:
    batch = [
        ask(text, id=str(n), speed=speed, seed=seed) for n, (text, speed, seed) in enumerate(wanted)
    ]
    together = speak(engine, batch)
    for one in batch:
        assert np.array_equal(together[one.id].samples, alone(engine, one))


def test_it_is_the_same_voice_as_the_onnx_model(engine: HibariTorchEngine) -> None:
    reference = hibari.build()
    for text in TEXTS[1:]:
        reference.admit([ask(text)])
        (chunk,) = reference.step()
        ours = alone(engine, ask(text))
        assert abs(len(ours) - len(chunk.samples)) <= 0.02 * len(ours) + 600
        both = [_spectrum(x) for x in (ours, chunk.samples)]
        assert np.corrcoef(*both)[0, 1] > 0.97


def _spectrum(samples: Samples) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Long-term spectrum in decibels: what a voice sounds like, whatever it says when."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 1_024)[::256] * np.hanning(1_024)
    power = (np.abs(np.fft.rfft(frames, axis=1)) ** 2).mean(axis=0)
    return 10 * np.log10(power + 1e-9)


def test_the_network_agrees_with_the_onnx_graph_part_by_part(engine: HibariTorchEngine) -> None:
    session = hibari.build()._model.sess
    ids = engine._text.phoneme_ids(TEXTS[1])[0]
    feed = {"ids": np.array([ids]), "speed": np.ones(1, np.float32)}
    expected = session.run(None, feed)
    with torch.inference_mode():
        length, speed = torch.tensor([len(ids)]), torch.ones(1)
        spectrum = engine._network(torch.tensor([ids]), length, speed)
    frames = expected[0].shape[2]
    assert abs(int(spectrum.frames[0]) - frames) <= 2
    if int(spectrum.frames[0]) == frames:
        for ours, theirs in zip(spectrum.parts, expected[:5], strict=True):
            assert np.corrcoef(ours[0].numpy().ravel(), theirs[0].T.ravel())[0, 1] > 0.999


def test_one_bad_utterance_does_not_touch_its_neighbours(engine: HibariTorchEngine) -> None:
    good = ask(TEXTS[1], id="good", seed=4)
    batch = [ask("日本", id="bad"), good, ask("Hi.", id="fast", speed=9.0)]
    chunks = speak(engine, batch)
    assert chunks["bad"].error
    assert chunks["fast"].error
    assert np.array_equal(chunks["good"].samples, alone(engine, good))


def test_a_text_of_several_passes_comes_whole(engine: HibariTorchEngine) -> None:
    long = ask("$1,234,567.89 and " * 20 + "that is all.", id="long")
    assert len(engine._text.phoneme_ids(long.text)) > 1
    engine.admit([ask("Before.", id="a"), long, ask("After.", id="b")])
    chunks = engine.step()
    finals = [chunk.utterance_id for chunk in chunks if chunk.final]
    assert finals == ["a", "long", "b"]
    assert sum(len(c.samples) for c in chunks if c.utterance_id == "long") > 24_000 * 20


def test_the_seed_shapes_the_noise_alone(engine: HibariTorchEngine) -> None:
    first, second = (alone(engine, ask(TEXTS[1], seed=seed)) for seed in (1, 2))
    assert first.shape == second.shape
    assert not np.array_equal(first, second)
    assert np.corrcoef(first, second)[0, 1] > 0.8


def test_dropped_utterances_are_not_spoken(engine: HibariTorchEngine) -> None:
    engine.admit([ask("One.", id="1"), ask("Two.", id="2")])
    engine.drop(["1"])
    assert [chunk.utterance_id for chunk in engine.step()] == ["2"]
    assert list(engine.step()) == []


def test_out_of_memory_is_reported_as_such_and_the_batch_can_be_dropped(
    engine: HibariTorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError

    engine.admit([ask("One.", id="1")])
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_network", full)
        with pytest.raises(MemoryError):
            engine.step()
    engine.drop(["1"])
    assert alone(engine, ask("Two.", id="2")).size


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(SetupError, match="no device"):
        registry.build("hibari-torch", {"device": "nonsense"})


def test_it_says_what_it_is(engine: HibariTorchEngine) -> None:
    assert engine.info.name == "hibari-torch"
    assert engine.info.backend == "torch-cpu-fp32"
    assert engine.info.slots == 8
