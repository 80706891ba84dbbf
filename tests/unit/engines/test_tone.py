"""The tone engine's audio says what it was made from, after all that a farm does to audio."""

import io

import lameenc
import numpy as np
import numpy.typing as npt
import pytest
import soundfile
import soxr

from tests.hosts import utterance
from worker.engines.base import Samples
from worker.engines.tone import RATE_HZ, build, utterance_hash
from worker.engines.tone_code import decode, encode

HASHES = [utterance_hash(f"Sentence {n}.", "a", 1.0) for n in range(40)]


def stitched(hashes: list[str], gap_s: float = 0.05, trim_s: float = 0.006) -> Samples:
    """Clips trimmed, faded and put behind one another, as assembly does it."""
    fade = np.linspace(0, 1, RATE_HZ // 200, dtype=np.float32)
    pieces = []
    for mark in hashes:
        cut = int(trim_s * RATE_HZ)
        clip = encode(mark, RATE_HZ)[cut : -cut or None].copy()
        clip[: len(fade)] *= fade
        clip[-len(fade) :] *= fade[::-1]
        pieces += [clip, np.zeros(int(gap_s * RATE_HZ), np.float32)]
    return np.concatenate(pieces)


def read(samples: npt.ArrayLike, rate_hz: int) -> list[str]:
    return [mark.hash_hex for mark in decode(samples, rate_hz)]


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
def test_hashes_survive_resampling_trimming_and_fading(rate_hz: int, subtype: str) -> None:
    file = io.BytesIO()
    audio = soxr.resample(stitched(HASHES), RATE_HZ, rate_hz)
    soundfile.write(file, audio, rate_hz, format="FLAC", subtype=subtype)
    file.seek(0)
    assert read(*soundfile.read(file, dtype="float32")) == HASHES


@pytest.mark.parametrize("rate_hz", [24_000, 44_100, 48_000])
@pytest.mark.parametrize("kbps", [64, 96])
def test_hashes_survive_mp3(rate_hz: int, kbps: int) -> None:
    encoder = lameenc.Encoder()
    encoder.set_bit_rate(kbps)
    encoder.set_in_sample_rate(rate_hz)
    encoder.set_channels(1)
    encoder.set_quality(5)
    encoder.silence()
    audio = soxr.resample(stitched(HASHES), RATE_HZ, rate_hz)
    pcm = (np.clip(audio, -1, 1) * 32_767).astype("<i2").tobytes()
    mp3 = io.BytesIO(bytes(encoder.encode(pcm) + encoder.flush()))
    assert read(*soundfile.read(mp3, dtype="float32")) == HASHES


@pytest.mark.parametrize("gap_s", [0.0, 0.001, 0.3])
def test_hashes_are_told_apart_with_and_without_pauses(gap_s: float) -> None:
    assert read(stitched(HASHES, gap_s), RATE_HZ) == HASHES


def test_absence_doubling_and_disorder_show() -> None:
    a, b, c = HASHES[:3]
    assert read(stitched([a, a, c, b]), RATE_HZ) == [a, a, c, b]


def test_places_are_right_to_within_a_few_milliseconds() -> None:
    gap = np.zeros(int(0.1 * RATE_HZ), np.float32)
    clip = encode(HASHES[0], RATE_HZ)
    (mark,) = decode(np.concatenate([gap, clip, gap]), RATE_HZ)
    assert abs(mark.start_sample - len(gap) - 0.006 * RATE_HZ) < 0.004 * RATE_HZ
    assert abs(mark.end_sample - len(gap) - len(clip) + 0.006 * RATE_HZ) < 0.004 * RATE_HZ


def test_quieter_and_louder_audio_reads_the_same() -> None:
    for gain in (0.05, 1.9):
        assert read(stitched(HASHES) * np.float32(gain), RATE_HZ) == HASHES


def test_what_carries_no_hash_has_none() -> None:
    rng = np.random.default_rng(1)
    noise = 0.2 * rng.standard_normal(10 * RATE_HZ)
    sweep = np.sin(np.cumsum(np.linspace(0, 1, 5 * RATE_HZ)))
    for audio in (noise, sweep, np.zeros(RATE_HZ), np.zeros(0), np.zeros(3)):
        assert decode(audio, RATE_HZ) == []


def test_a_damaged_hash_is_not_reported_as_another() -> None:
    clip = encode(HASHES[0], RATE_HZ)
    middle = len(clip) // 2
    clip[middle : middle + 800] = encode(HASHES[1], RATE_HZ)[middle - 500 : middle + 300]
    assert decode(clip, RATE_HZ) == []


def test_the_hash_depends_on_what_is_said_and_not_on_the_seed() -> None:
    engine = build()
    engine.admit([utterance("Hi.", id="1", seed=1), utterance("Hi.", id="2", seed=2)])
    first, second = [*engine.step(), *engine.step()]
    assert np.array_equal(first.samples, second.samples)
    different = {utterance_hash(t, v, s) for t in ("a", "b") for v in "ab" for s in (1.0, 1.5)}
    assert len(different) == 8


def test_audio_is_short_and_starts_and_ends_in_silence() -> None:
    clip = encode(HASHES[0], RATE_HZ)
    assert 0.25 < len(clip) / RATE_HZ < 0.4
    assert not clip[:120].any()
    assert not clip[-120:].any()
    assert np.abs(clip).max() <= 0.5


def test_a_freed_slot_can_be_refilled_before_the_others_end() -> None:
    engine = build(slots=2)
    engine.admit([utterance("a", id="a"), utterance("b", id="b")])
    assert [c.utterance_id for c in engine.step()] == ["a"]
    engine.admit([utterance("c", id="c")])
    engine.drop(["b", "unheard of"])
    assert [c.utterance_id for c in engine.step()] == ["c"]
    assert list(engine.step()) == []


def test_faults_are_provoked_by_texts() -> None:
    engine = build()
    engine.admit([utterance("[[fail]]", id="f")])
    assert [c.error for c in engine.step()] == ["the text asked for it"]
    engine.admit([utterance("[[raise]]", id="r")])
    with pytest.raises(RuntimeError):
        engine.step()
    engine.drop(["r"])
    engine.admit([utterance("[[oom]]", id="o"), utterance("b", id="b")])
    with pytest.raises(MemoryError):
        engine.step()
    engine.drop(["b"])
    assert [c.error for c in engine.step()] == [None]
