"""hibari speaks: the same again bit for bit, all of the text, and nothing but what it was given."""
# ruff: noqa: RUF001 - look-alike characters are phonemes and subjects here

import contextlib
import socket
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import UtteranceError
from tests.hosts import utterance
from worker.engines.base import Chunk, Samples
from worker.engines.hibari import HibariEngine, build
from worker.engines.hibari_text import MAX_PHONEMES, HibariText, cut_phonemes


@pytest.fixture(scope="module")
def engine() -> HibariEngine:
    return build()


@pytest.fixture(scope="module")
def text() -> HibariText:
    return HibariText()


def speak(engine: HibariEngine, words: str, **changes: Any) -> Chunk:
    engine.admit([utterance(words, voice="heart", **changes)])
    (chunk,) = engine.step()
    return chunk


def audio(engine: HibariEngine, words: str, **changes: Any) -> Samples:
    chunk = speak(engine, words, **changes)
    assert chunk.error is None
    return chunk.samples


def test_the_same_utterance_sounds_the_same_bit_for_bit(engine: HibariEngine) -> None:
    words = "The quick brown fox jumps over the lazy dog."
    first = audio(engine, words, id="1", seed=9)
    audio(engine, "Something else in between.", seed=3)
    again = audio(engine, words, id="2", seed=9, tier="rush", due_at=5.0)
    assert np.array_equal(first, again)
    assert np.array_equal(first, audio(build(), words, seed=9))


def test_the_seed_shapes_the_noise_and_the_speed_the_length(engine: HibariEngine) -> None:
    words = "The quick brown fox jumps over the lazy dog."
    normal = audio(engine, words, seed=1)
    other = audio(engine, words, seed=2)
    assert len(normal) == len(other)
    assert not np.array_equal(normal, other)
    assert len(audio(engine, words, speed=2.0)) < 0.65 * len(normal)
    assert len(audio(engine, words, speed=0.5)) > 1.7 * len(normal)


def test_audio_is_mono_float32_within_bounds_at_24_khz(engine: HibariEngine) -> None:
    samples = audio(engine, "Hello there, how are you today?")
    assert samples.dtype == np.float32
    assert samples.ndim == 1
    assert 0.05 < np.abs(samples).max() <= 1.0
    assert 1.0 < len(samples) / engine.info.sample_rate_hz < 4.0


@pytest.mark.parametrize("words", ["Привет", "日本語", "...", "— !"])
def test_what_cannot_be_spoken_whole_is_refused_without_quoting_it(
    engine: HibariEngine, words: str
) -> None:
    chunk = speak(engine, words)
    assert chunk.final
    assert chunk.error
    assert not set(words.strip(". !—")) & set(chunk.error)
    assert not chunk.samples.size


@pytest.mark.parametrize("speed", [0.49, 2.01, float("nan")])
def test_speeds_at_which_it_does_not_speak_clearly_are_refused(
    engine: HibariEngine, speed: float
) -> None:
    assert "speed" in str(speak(engine, "Hello.", speed=speed).error)


def test_dropped_utterances_are_not_spoken(engine: HibariEngine) -> None:
    engine.admit([utterance("Hello.", id="gone")])
    engine.drop(["gone", "unheard of"])
    assert list(engine.step()) == []


def test_it_offers_only_the_voice_that_needs_no_download(engine: HibariEngine) -> None:
    assert [voice.id for voice in engine.info.voices] == ["heart"]
    assert engine.info.version.startswith(version("hibari-tts"))
    assert engine.info.languages == ("en",)
    assert engine.info.slots == 1


def test_it_never_opens_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it wants the network")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    assert audio(build(), "I stay at home with my xylographic zwieback.").size


LOSSLESS = [
    ("five $ now", "five now"),
    ("It costs 5 €.", "It costs 5."),
    ("the $AAPL share", "the AAPL share"),
    ("I love NY ♥", "I love NY"),
    ("see ａｂｃ", "see"),
    ("2 * 3", "2 3"),
    ("[word](http://x.com)", "word"),
    ("a → ← b", "a b"),
    ("it is ™", "it is"),
    ("C:\\dir", "C: dir"),
    ("1.5 V", "15 V"),
    ("007", "7"),
    ("3.10", "3.1"),
    ("v2.0.1", "v201"),
]


@pytest.mark.parametrize(("words", "without"), LOSSLESS)
def test_what_the_bare_reader_drops_is_heard(text: HibariText, words: str, without: str) -> None:
    heard, missing = text.phoneme_ids(words)[0], text.phoneme_ids(without)[0]
    assert len(heard) > len(missing)


def test_markup_cannot_make_it_say_something_else(text: HibariText) -> None:
    assert text.phoneme_ids("[hello](/bˈI/)") != text.phoneme_ids("bye")
    assert len(text.phoneme_ids("[hello](/bˈI/)")[0]) > len(text.phoneme_ids("hello")[0])


ODD_WORDS = (
    "It costs $5. five $ $AAPL US$5 $1.999 5€ & AT&T 50% #1 #tag C# a@b.com www.x.org café αβγ "
    "HTML5 XKCD 3.14 1,234 1234567890123456789 007 1/2 10/12/2019 555-0123 -5 5-3 x^2 C:\\d ½ km² "
    "→ 😀 ™ 'tis “Q” a/b C++ ~5 |x| {x} 20.5°C № Ⅳ U.S.A. 1990s '60s Mr. Dr. St. 0 .5 1,5 v3.1 "
    "B2B 3.5km 16:9 No.5 I'm o'clock !!! ... - — ; ( ) ' A a I to the in by used am Hmm NASA"
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(ODD_WORDS.split()), min_size=2, max_size=6))
def test_odd_words_are_all_heard_in_each_others_company(text: HibariText, words: list[str]) -> None:
    def sounds(part: str) -> int:
        try:
            return sum(len(ids) - 2 for ids in text.phoneme_ids(part))
        except UtteranceError:  # punctuation alone
            return 0

    assert sounds(" ".join(words)) >= 0.6 * sum(map(sounds, words)) - 4


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.text(max_size=80))
def test_any_text_is_read_or_refused_and_never_breaks_the_reader(
    text: HibariText, words: str
) -> None:
    with contextlib.suppress(UtteranceError):
        assert all(len(ids) > 2 for ids in text.phoneme_ids(words))


@given(st.text(alphabet="ab ,.;ˈ", max_size=300), st.integers(8, 40))
def test_long_phoneme_strings_are_cut_without_loss(phonemes: str, limit: int) -> None:
    pieces = cut_phonemes(phonemes, limit)
    assert all(len(piece) <= limit for piece in pieces)
    assert [c for c in "".join(pieces) if c in "ab"] == [c for c in phonemes if c in "ab"]


def test_a_text_of_the_greatest_length_takes_few_passes(text: HibariText) -> None:
    sentence = "However far we travelled, the professor never once looked back at us. "
    passes = text.phoneme_ids((sentence * 9)[:400])
    assert len(passes) <= 2
    assert all(len(ids) <= MAX_PHONEMES + 2 for ids in passes)
