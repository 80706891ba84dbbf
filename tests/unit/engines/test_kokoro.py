"""Kokoro's engine over a tiny model: what goes into the model, and what is made of its answers."""
# ruff: noqa: RUF001 - full-width marks are part of Chinese text

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.errors import SetupError
from tests.hosts import running_host, utterance
from tests.tiny_kokoro import list_checksums, spoken, tiny_kokoro, tiny_model, tiny_style
from worker.engines import registry
from worker.engines.base import Chunk, Samples
from worker.engines.kokoro import KokoroEngine, build
from worker.engines.kokoro.presets import presets
from worker.engines.kokoro.text import MAX_PHONEMES, MixedText

MIXED = "我用 Python 写了3个脚本。"
NUMBER = {voice.id: at for at, voice in enumerate(presets())}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_kokoro(tmp_path_factory.mktemp("kokoro") / "files")


@pytest.fixture(scope="module")
def engine(folder: Path) -> KokoroEngine:
    return build(folder=str(folder))


@pytest.fixture(scope="module")
def text() -> MixedText:
    return MixedText()


def chunks(engine: KokoroEngine, words: str, **changes: Any) -> list[Chunk]:
    asked = {"voice": "zf_xiaoxiao", "language": "zh"} | changes
    engine.admit([utterance(words, **asked)])
    found = [*engine.step()]
    while not found[-1].final:
        found += engine.step()
    return found


def audio(engine: KokoroEngine, words: str, **changes: Any) -> Samples:
    found = chunks(engine, words, **changes)
    assert [chunk.error for chunk in found] == [None] * len(found)
    return np.concatenate([chunk.samples for chunk in found])


def style(voice: str, phonemes: int) -> Samples:
    row: Samples = tiny_style(NUMBER[voice])[phonemes]
    return row


def test_the_whole_sentence_goes_through_the_model_in_one_pass(
    engine: KokoroEngine, text: MixedText
) -> None:
    [ids] = text.token_ids(MIXED, "zh")
    [chunk] = chunks(engine, MIXED)
    assert chunk.final
    assert chunk.samples.dtype == np.float32
    expected = spoken(ids, style("zf_xiaoxiao", len(ids)))
    np.testing.assert_allclose(chunk.samples, expected, atol=2e-4)


def test_equal_utterances_sound_equal_bit_for_bit(engine: KokoroEngine, folder: Path) -> None:
    first = audio(engine, MIXED, seed=1)
    audio(engine, "别的话。", voice="am_adam")
    assert np.array_equal(first, audio(engine, MIXED, id="2", seed=9, tier="rush", due_at=3.0))
    assert np.array_equal(first, audio(build(folder=str(folder)), MIXED))


def test_each_voice_has_its_own_sound_and_a_number(engine: KokoroEngine) -> None:
    sounds = {voice.id: audio(engine, "你好。", voice=voice.id) for voice in engine.info.voices}
    assert len({sound.tobytes() for sound in sounds.values()}) == len(presets()) == 36
    for voice in engine.info.voices:
        [number] = voice.aliases
        assert np.array_equal(sounds[voice.id], audio(engine, "你好。", voice=number))


def test_a_blend_is_the_weighted_sum_of_its_voices(engine: KokoroEngine, text: MixedText) -> None:
    [ids] = text.token_ids(MIXED, "zh")
    mixed = 0.75 * style("zf_xiaoxiao", len(ids)) + 0.25 * style("af_heart", len(ids))
    for written in ("zf_xiaoxiao:3+af_heart:1", "3:0.25+47:0.75"):
        found = audio(engine, MIXED, voice=written)
        np.testing.assert_allclose(found, spoken(ids, mixed.astype(np.float32)), atol=2e-4)


def test_speed_reaches_the_model_and_has_limits(engine: KokoroEngine, text: MixedText) -> None:
    [ids] = text.token_ids("你好。", "zh")
    slow = audio(engine, "你好。", speed=0.5)
    np.testing.assert_allclose(slow, spoken(ids, style("zf_xiaoxiao", len(ids)), 0.5), atol=2e-4)
    for speed in (0.4, 2.1, float("nan")):
        [refused] = chunks(engine, "你好。", speed=speed)
        assert refused.final
        assert "speed" in str(refused.error)


def test_a_long_sentence_is_cut_at_clause_marks_and_shows_progress(
    engine: KokoroEngine, text: MixedText
) -> None:
    words = "今天天气很好，我们去公园散步。" * 16
    assert len(words) <= engine.info.max_chars
    passes = text.token_ids(words, "zh")
    found = chunks(engine, words)
    assert len(found) == len(passes) > 1
    assert [chunk.final for chunk in found] == [False] * (len(passes) - 1) + [True]
    assert all(len(ids) <= MAX_PHONEMES for ids in passes)
    marks = {text._vocabulary[mark] for mark in ".,"}
    assert all(ids[-1] in marks for ids in passes)
    whole = [i for i in text._vocabulary.values() if i != text._vocabulary[" "]]
    sounds = [i for ids in passes for i in ids if i in whole]
    assert sounds == [text._vocabulary[c] for c in text.phonemes(words, "zh") if c != " "]


@pytest.mark.parametrize("words", ["Привет", "カタカナ", "a ㄅ", "兙", "你好☃"])
def test_what_cannot_be_spoken_whole_is_refused_without_quoting_it(
    engine: KokoroEngine, words: str
) -> None:
    [chunk] = chunks(engine, words)
    assert chunk.final
    assert not chunk.samples.size
    assert "U+" in str(chunk.error)
    assert not set(words) & set(str(chunk.error)) - set("a ")


def test_dropped_utterances_are_not_spoken_on(engine: KokoroEngine) -> None:
    engine.admit(
        [utterance("今天天气很好，我们去公园散步。" * 16, id="gone", language="zh", voice="47")]
    )
    [first] = engine.step()
    assert not first.final
    engine.drop(["gone", "unheard of"])
    assert list(engine.step()) == []


def test_it_says_what_it_is(engine: KokoroEngine) -> None:
    info = engine.info
    assert (info.sample_rate_hz, info.slots, info.languages) == (24_000, 1, ("zh", "en"))
    assert info.default_voice == "zf_xiaoxiao"
    assert {v.language for v in info.voices} == {"zh", "en"}
    assert all(v.gender and v.licence and v.name for v in info.voices)


def test_a_slow_voice_is_quoted_as_slow_and_a_blend_as_its_voices(engine: KokoroEngine) -> None:
    quoted_s = {
        voice: engine.info.speech_s(MIXED, voice)
        for voice in ("zf_xiaobei", "zf_xiaoyi", "zf_xiaobei:0.5+zf_xiaoyi:0.5", "")
    }
    slow, quick, blend, usual = quoted_s.values()
    assert quick < slow
    assert blend == pytest.approx((slow + quick) / 2)
    assert usual == pytest.approx(slow * 0.79)
    assert all(0.6 < voice.pace < 1.2 for voice in engine.info.voices)


def test_its_version_changes_with_its_files(folder: Path, tmp_path: Path) -> None:
    other = tiny_kokoro(tmp_path / "other")
    assert build(folder=str(other)).info.version == build(folder=str(folder)).info.version
    tiny_style(99).tofile(other / "voices" / "am_adam.bin")
    list_checksums(other)
    assert build(folder=str(other)).info.version != build(folder=str(folder)).info.version


def test_it_speaks_through_its_host(folder: Path, engine: KokoroEngine) -> None:
    with running_host("kokoro", folder=str(folder)) as host:
        asked = {"voice": "zm_yunxi:0.5+zf_xiaoyi:0.5", "language": "zh"}
        samples = host.link.synthesize(utterance(MIXED, **asked), on_progress=lambda: None)
        assert np.array_equal(samples, audio(engine, MIXED, **asked))


def ruin_nothing_there(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()


def ruin_model(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"half")


def ruin_voice(folder: Path) -> None:
    (folder / "voices" / "af_heart.bin").unlink()


def ruin_list(folder: Path) -> None:
    (folder / "SHA256SUMS").write_text("<html>")


def ruin_all_voices(folder: Path) -> None:
    for path in (folder / "voices").iterdir():
        path.unlink()
    tiny_style(1).tofile(folder / "voices" / "jf_alpha.bin")
    list_checksums(folder)


def swap_model(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"not a model")
    list_checksums(folder)


def swap_export(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(tiny_model(("input_ids", "style", "speed")))
    list_checksums(folder)


def swap_voice(folder: Path) -> None:
    (folder / "voices" / "af_heart.bin").write_bytes(b"\0" * 1000)
    list_checksums(folder)


@pytest.mark.parametrize(
    "harm",
    [
        ruin_nothing_there,
        ruin_model,
        ruin_voice,
        ruin_list,
        ruin_all_voices,
        swap_model,
        swap_export,
        swap_voice,
    ],
)
def test_missing_and_damaged_files_are_told_apart_and_named(tmp_path: Path, harm: Any) -> None:
    folder = tiny_kokoro(tmp_path / "files")
    harm(folder)
    with pytest.raises(SetupError, match=str(folder)):
        build(folder=str(folder))


def test_without_files_the_command_that_brings_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXFARM_VOICES_DIR", str(tmp_path))
    with pytest.raises(SetupError, match="voxfarm voices install kokoro"):
        registry.build("kokoro", {})
    tiny_kokoro(tmp_path / "kokoro")
    assert registry.build("kokoro", {}).info.name == "kokoro"
