"""Content keys: all that shapes the sound is in them, and nothing else."""

import pytest

from shared.content import fallback_key, seed_for, segment_key
from shared.farm_secret import tenant_secret
from shared.jobs import AudioFormat, Fallback, JobSpec, NewlineMode, OnError, OnUnspeakable, Pauses
from shared.tiers import Tier
from tests.factories import job_spec

SECRET = b"secret of a tenant"
SHAPING: dict[str, object] = {
    "engine": "other",
    "engine_version": "2",
    "engine_backend": "torch",
    "engine_rate_hz": 22_050,
    "voice": "b",
    "language": "zh",
    "speed": 1.1,
    "seed": 1,
}
# Where a text is cut shows in the pieces' texts; what is made of them is the part key's business.
NOT_SHAPING: dict[str, object] = {
    "engine_max_chars": 300,
    "engine_min_chars": 3,
    "languages": ("en", "zh"),
    "tier": Tier.BULK,
    "format": AudioFormat.MP3,
    "sample_rate_hz": 44_100,
    "pauses": Pauses(sentence_s=1.0),
    "newlines": NewlineMode.LINES,
    "on_unspeakable": OnUnspeakable.SKIP,
    "split_chapters": True,
    "fallback": Fallback(engine="f", version="1", backend="numpy", voice="a"),
    "reuse": False,
    "on_error": OnError.FAIL,
}


def key(text: str = "Hello.", **changes: object) -> str:
    return segment_key(SECRET, job_spec(**changes), text)


def test_every_setting_of_a_job_is_known_to_shape_the_sound_or_not_to() -> None:
    assert set(JobSpec.model_fields) == set(SHAPING) | set(NOT_SHAPING)


@pytest.mark.parametrize("name", SHAPING)
def test_what_shapes_the_sound_changes_the_key(name: str) -> None:
    assert key(**{name: SHAPING[name]}) != key()


@pytest.mark.parametrize("name", NOT_SHAPING)
def test_what_does_not_leaves_it(name: str) -> None:
    assert key(**{name: NOT_SHAPING[name]}) == key()


def test_every_difference_of_the_text_counts() -> None:
    texts = [
        "Hello.",
        "hello.",
        "Hello",
        "Hello. ",
        " Hello.",
        "Hello!",
        "Hello\uff0e",
        "Hello.\u200b",
    ]
    assert len({key(text) for text in texts}) == len(texts)


def test_fields_cannot_run_into_each_other() -> None:
    assert key(voice="ab", language="c") != key(voice="a", language="bc")
    assert key('x","voice":"b', voice="a") != key("x", voice='b","text":"x')


def test_equal_texts_of_two_tenants_share_no_key_and_takes_share_no_seed() -> None:
    one, two = (tenant_secret(b"root", tenant) for tenant in ("one", "two"))
    assert segment_key(one, job_spec(), "Hello.") != segment_key(two, job_spec(), "Hello.")
    assert seed_for(key(), 0) != seed_for(key(), 1)


def test_what_a_fallback_speaks_has_a_key_of_its_own() -> None:
    spec = {"engine": "f", "version": "1", "backend": "numpy", "voice": "a"}
    assert len({key(), fallback_key(key(), spec), fallback_key(key(), spec | {"voice": "b"})}) == 3
