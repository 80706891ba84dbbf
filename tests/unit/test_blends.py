"""Voices by id, alias or mixture: each mixture has one spelling, and nothing else is a mixture."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.blends import MOST_VOICES, parse_blend, write_blend
from shared.voices import EngineInfo, VoiceInfo
from tests.unit.api.engines import engine_info


def mixing(**changes: object) -> EngineInfo:
    voices = (
        VoiceInfo(id="ann", language="en", licence="CC0", aliases=("7",)),
        VoiceInfo(id="bo", language="zh", licence="CC0", aliases=("8",)),
        VoiceInfo(id="cy", language="en", licence="Apache-2.0"),
    )
    return engine_info(**({"voices": voices, "blends": True} | changes))


@pytest.mark.parametrize(
    "written", ["ann:0.6+bo:0.4", "bo:0.4+ann:0.6", "7:6+8:4", "ann:3 + bo:2", "8:4+ann:6"]
)
def test_a_mixture_has_one_spelling_however_it_is_written(written: str) -> None:
    voice = mixing().voice_named(written)
    assert voice is not None
    assert voice.id == "ann:0.6+bo:0.4"
    assert (voice.language, voice.licence) == ("en", "CC0")
    assert mixing().voice_named(voice.id) == voice


def test_it_speaks_the_language_of_the_heaviest_and_bears_every_licence() -> None:
    voice = mixing().voice_named("bo:3+cy:2")
    assert voice is not None
    assert (voice.language, voice.licence) == ("zh", "CC0 and Apache-2.0")


def test_an_alias_is_the_voice_itself() -> None:
    info = mixing()
    assert info.voice_named("7") == info.voices[0] == info.voice_named("ann")


@pytest.mark.parametrize(
    "written",
    [
        "",
        "+",
        "ann+",
        "ann:1",
        "ann:0.5",
        "ann:0+bo:1",
        "ann:-1+bo:2",
        "ann:x+bo:1",
        "ann:1e9+bo:1",
        "ann:nan+bo:1",
        "ann:1+7:1",
        "ann:1+ann:2",
        "ann:1+dan:1",
        "ann:0.00001+bo:9999",
        "ann:1:2+bo:1",
        "+".join(f"v{n}:1" for n in range(MOST_VOICES + 1)),
    ],
)
def test_anything_else_is_no_voice(written: str) -> None:
    assert mixing().voice_named(written) is None


def test_an_engine_that_does_not_blend_has_its_voices_only() -> None:
    info = mixing(blends=False)
    assert info.voice_named("ann:1+bo:1") is None
    assert info.voice_named("8") == info.voices[1]


@given(st.lists(st.integers(1, 9999), min_size=2, max_size=MOST_VOICES))
def test_the_spelling_of_a_mixture_stays_what_it_is(weights: list[int]) -> None:
    shares = parse_blend("+".join(f"v{at}:{weight}" for at, weight in enumerate(weights)))
    if shares is None:  # a share too small to be heard
        assert min(weights) / sum(weights) < 1e-4
        return
    assert abs(sum(share.weight for share in shares) - 1) < 1e-3
    written = write_blend(shares)
    again = parse_blend(written)
    assert again is not None
    assert write_blend(again) == written
