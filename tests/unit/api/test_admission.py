import pytest

from api.admission import Admission, NoEngineError
from api.submission import Submission
from shared.errors import UsageError
from shared.jobs import SAMPLE_RATES_HZ, AudioFormat, NewlineMode, OnUnspeakable, Pauses
from shared.ledger.jobs import NewJob
from shared.settings import Settings
from shared.tiers import Tier
from shared.voices import EngineInfo, VoiceInfo
from tests.unit.api.engines import engine_info


def admit(
    *engines: EngineInfo, settings: dict[str, object] | None = None, **asked: object
) -> NewJob:
    return Admission(Settings.model_validate(settings or {})).admit(
        Submission.model_validate({"text": "Hello."} | asked, strict=False),
        engines or (engine_info(),),
        tenant="somebody",
    )


def chapters(*texts: str, title: str = "") -> dict[str, object]:
    return {"text": None, "chapters": [{"title": title, "text": text} for text in texts]}


def refusal(*engines: EngineInfo, **asked: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        admit(*engines, **asked)  # type: ignore[arg-type]
    return caught.value


def test_what_is_left_open_is_filled_in_and_frozen() -> None:
    new = admit()
    spec = new.spec
    assert (new.tenant, new.text, list(new.chapters)) == ("somebody", "Hello.", [])
    assert (spec.engine, spec.voice, spec.language) == ("hibari", "heart", "en")
    assert (spec.engine_version, spec.engine_backend, spec.engine_rate_hz) == (
        "1.2",
        "onnx",
        24_000,
    )
    assert (spec.engine_max_chars, spec.engine_min_chars) == (400, 2)
    assert (spec.tier, spec.format, spec.sample_rate_hz) == (
        Tier.STANDARD,
        AudioFormat.MP3,
        44_100,
    )


def test_every_wish_reaches_the_job() -> None:
    new = admit(
        voice="oak",
        tier="bulk",
        format="wav",
        sample_rate_hz=8_000,
        speed=1.5,
        seed=7,
        pauses={"sentence_s": 1.0},
        newlines="lines",
        on_unspeakable="skip",
        split_chapters=True,
        title="T",
        metadata={"k": "v"},
    )
    spec = new.spec
    assert (spec.voice, spec.tier, spec.format) == ("oak", Tier.BULK, AudioFormat.WAV)
    assert (spec.sample_rate_hz, spec.speed, spec.seed) == (8_000, 1.5, 7)
    assert spec.pauses == Pauses(sentence_s=1.0)
    assert (spec.newlines, spec.on_unspeakable) == (NewlineMode.LINES, OnUnspeakable.SKIP)
    assert spec.split_chapters
    assert (new.title, new.metadata) == ("T", {"k": "v"})


def test_lossless_formats_default_to_the_speech_rate() -> None:
    assert admit(format="flac").spec.sample_rate_hz == 24_000


@pytest.mark.parametrize("rate_hz", SAMPLE_RATES_HZ)
@pytest.mark.parametrize("format_", list(AudioFormat))
def test_every_format_comes_at_every_rate(format_: AudioFormat, rate_hz: int) -> None:
    assert admit(format=format_, sample_rate_hz=rate_hz).spec.sample_rate_hz == rate_hz


def test_chapters_are_joined_and_their_places_kept() -> None:
    new = admit(**chapters("One. ", "Two.", title="T"))
    assert new.text == "One. Two."
    assert list(new.chapters) == [("T", 0, 5), ("T", 5, 9)]


def test_an_unknown_voice_is_answered_with_the_choices() -> None:
    error = refusal(voice="bob")
    assert error.code == "unknown-voice"
    assert error.fields["choices"] == ["heart", "oak"]
    assert "heart, oak" in str(error)


def test_an_unknown_engine_is_answered_with_the_choices() -> None:
    error = refusal(engine_info(), engine_info("tone", testing=True), engine="espeak")
    assert error.code == "unknown-engine"
    assert error.fields["choices"] == ["hibari"]


def test_a_testing_engine_needs_the_operators_leave() -> None:
    tone = engine_info("tone", testing=True)
    assert refusal(engine_info(), tone, engine="tone").code == "testing-engine"
    allowed = admit(engine_info(), tone, settings={"allow_testing_engines": True}, engine="tone")
    assert allowed.spec.engine == "tone"


def test_a_language_the_engine_does_not_speak_is_refused_with_the_choices() -> None:
    error = refusal(language="zh")
    assert error.code == "unknown-language"
    assert error.fields["choices"] == ["en"]
    two = engine_info(languages=("en", "zh"))
    assert admit(two, language="zh").spec.language == "zh"


@pytest.mark.parametrize("rate_hz", [0, -1, 7_999, 96_000, 10**30])
def test_other_sample_rates_are_refused_with_the_choices(rate_hz: int) -> None:
    error = refusal(sample_rate_hz=rate_hz)
    assert error.code == "unknown-sample-rate"
    assert error.fields["choices"] == list(SAMPLE_RATES_HZ)


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("", "empty-text", 0),
        ("  \n\t ", "nothing-speakable", 0),
        ("?! ... --", "nothing-speakable", 0),
        ("Hello \x00 there.", "control-character", 6),
        ("Hello \x1b[31m there.", "control-character", 6),
        ("Hello \ufffe there.", "invalid-character", 6),
        ("He said 你好 to me.", "unspeakable-text", 8),
    ],
)
def test_text_that_cannot_be_spoken_is_refused_with_its_place(
    text: str, code: str, offset: int
) -> None:
    whole = refusal(text=text)
    assert (whole.code, whole.fields["field"], whole.fields["offset"]) == (code, "text", offset)
    part = refusal(**chapters("Fine.", text))
    assert (part.code, part.fields["field"], part.fields["offset"]) == (
        code,
        "chapters.1.text",
        offset,
    )


def test_foreign_script_may_be_skipped_by_choice() -> None:
    new = admit(text="He said 你好 to me.", on_unspeakable="skip")
    assert new.spec.on_unspeakable is OnUnspeakable.SKIP


def test_no_chapters_at_all_are_no_text() -> None:
    assert refusal(text=None, chapters=[]).code == "empty-text"


def test_the_limits_of_the_farm_are_kept_to_the_character() -> None:
    settings = {"max_job_chars": 10, "max_parts": 2, "max_metadata_bytes": 6}
    admit(settings=settings, text="x" * 10, metadata={"k": "ééa"})
    admit(settings=settings, **chapters("x" * 5, "y" * 5))
    with pytest.raises(UsageError) as too_long:
        admit(settings=settings, **chapters("x" * 5, "y" * 6))
    assert (too_long.value.code, too_long.value.fields["characters"]) == ("text-too-long", 11)
    with pytest.raises(UsageError) as too_many:
        admit(settings=settings, **chapters("x", "y", "z"))
    assert too_many.value.code == "too-many-chapters"
    with pytest.raises(UsageError) as too_much:
        admit(settings=settings, metadata={"k": "ééab"})
    assert too_much.value.code == "metadata-too-large"


def test_a_farm_without_its_engine_asks_for_patience() -> None:
    with pytest.raises(NoEngineError):
        Admission(Settings()).admit(Submission(text="Hello."), [], tenant="t")
    with pytest.raises(NoEngineError, match="hibari is not registered yet; registered: other"):
        admit(engine_info("other"))
    assert admit(engine_info("other"), engine="other").spec.engine == "other"


def test_a_fallback_engine_is_resolved_and_texts_are_cut_for_both() -> None:
    second = engine_info("second", max_chars=200, min_chars=5, languages=("en", "zh"))
    spec = admit(engine_info(), second, fallback_engine="second", voice="oak").spec
    assert spec.fallback is not None
    assert (spec.fallback.engine, spec.fallback.voice) == ("second", "heart")
    assert (spec.fallback.version, spec.fallback.backend) == ("1.2", "onnx")
    assert (spec.engine_max_chars, spec.engine_min_chars) == (200, 5)
    assert spec.languages == ("en",)
    assert admit().spec.fallback is None


@pytest.mark.parametrize(
    ("changes", "name", "code"),
    [
        ({}, "nobody", "unknown-engine"),
        ({}, "hibari", "unfit-fallback"),
        ({"sample_rate_hz": 16_000}, "second", "unfit-fallback"),
        ({"languages": ("zh",)}, "second", "unfit-fallback"),
        ({"testing": True}, "second", "testing-engine"),
    ],
)
def test_an_engine_that_cannot_step_in_is_refused(
    changes: dict[str, object], name: str, code: str
) -> None:
    second = engine_info("second", **changes)
    assert refusal(engine_info(), second, fallback_engine=name).code == code


def test_chinese_characters_take_their_own_time() -> None:
    engine = engine_info(languages=("en", "zh"), chars_per_audio_s=10, ideographs_per_audio_s=4)
    new = admit(engine, text="我们用 Python 写。", speed=2.0)
    assert new.expected_audio_s == pytest.approx((4 / 4 + 9 / 10) / 2)
    assert admit(text="Ten years.").expected_audio_s == pytest.approx(10 / 15)


def test_a_slow_voice_takes_its_own_time() -> None:
    voices = (VoiceInfo(id="ann", language="en"), VoiceInfo(id="bo", language="en", pace=0.5))
    engine = engine_info(voices=voices, chars_per_audio_s=10, blends=True)
    assert admit(engine, text="Ten years.").expected_audio_s == pytest.approx(1)
    assert admit(engine, text="Ten years.", voice="bo").expected_audio_s == pytest.approx(2)
    mixed = admit(engine, text="Ten years.", voice="ann:1+bo:1")
    assert mixed.expected_audio_s == pytest.approx(1.5)


def test_a_voice_is_frozen_by_its_id_whatever_name_was_asked_for() -> None:
    voices = (VoiceInfo(id="ann", language="en", aliases=("7",)), VoiceInfo(id="bo", language="zh"))
    engine = engine_info(voices=voices, languages=("en", "zh"), blends=True)
    assert admit(engine, voice="7").spec.voice == "ann"
    spec = admit(engine, voice="7:1+bo:3").spec
    assert (spec.voice, spec.language) == ("ann:0.25+bo:0.75", "zh")
    assert refusal(engine, voice="ann:1+dan:1").code == "unknown-voice"
    assert refusal(engine_info(voices=voices), voice="ann:1+bo:1").code == "unknown-voice"
