import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.submission import EXAMPLE, Submission, read_submission
from shared.errors import UsageError
from shared.jobs import AudioFormat, NewlineMode, OnUnspeakable
from shared.tiers import Tier


def read(**members: object) -> Submission:
    return read_submission(json.dumps(members).encode())


def refusal(**members: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read(**members)
    return caught.value


def fields_of(error: UsageError) -> list[str]:
    errors: Any = error.fields["errors"]
    return [found["field"] for found in errors]


def test_the_documented_example_is_read() -> None:
    asked = read(**EXAMPLE)
    assert asked.title == "An opening"
    assert asked.metadata == {"order": "4711"}


def test_a_bare_text_gets_every_default() -> None:
    asked = read(text="Hello.")
    assert asked == Submission(text="Hello.")
    assert (asked.tier, asked.format, asked.speed) == (Tier.STANDARD, AudioFormat.MP3, 1.0)
    assert asked.newlines is NewlineMode.PROSE
    assert asked.on_unspeakable is OnUnspeakable.REFUSE


def test_chapters_may_be_given_instead_of_text() -> None:
    asked = read(chapters=[{"title": "One", "text": "a"}, {"text": "b"}])
    assert asked.chapters is not None
    assert [chapter.title for chapter in asked.chapters] == ["One", ""]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"text": "a", "chapters": [{"text": "b"}]},
        {"text": None},
        {"chapters": [{"text": "b"}], "split_chapters": True},
    ],
)
def test_exactly_one_source_of_text_must_be_given(members: dict[str, object]) -> None:
    assert refusal(**members).code == "text-or-chapters"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"text": "a", "colour": "red"}, "colour"),
        ({"text": "a", "webhook": {"url": "https://x.example", "secret": "s"}}, "webhook.secret"),
        ({"text": "a", "pauses": {"breath_s": 1}}, "pauses.breath_s"),
        ({"chapters": [{"text": "a"}, {"text": "b", "voice": "x"}]}, "chapters.1.voice"),
    ],
)
def test_unknown_fields_are_named(members: dict[str, object], field: str) -> None:
    error = refusal(**members)
    assert error.code == "unknown-field"
    assert fields_of(error) == [field]
    assert field in str(error)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("text", 7),
        ("text", ["a"]),
        ("speed", 0.49),
        ("speed", 2.01),
        ("speed", "1.0"),
        ("speed", True),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", 10**39),
        ("seed", 1.5),
        ("seed", "7"),
        ("tier", "urgent"),
        ("tier", 1),
        ("format", "ogg"),
        ("newlines", "keep"),
        ("on_unspeakable", "ignore"),
        ("sample_rate_hz", "44100"),
        ("sample_rate_hz", True),
        ("split_chapters", "yes"),
        ("split_chapters", 1),
        ("voice", ""),
        ("voice", "v" * 129),
        ("title", "t" * 501),
        ("metadata", {"k": 1}),
        ("metadata", {"": "v"}),
        ("metadata", {"k" * 65: "v"}),
        ("metadata", {f"k{i}": "v" for i in range(65)}),
        ("metadata", [["k", "v"]]),
        ("pauses", {"sentence_s": -1}),
        ("pauses", {"sentence_s": "1"}),
        ("pauses", 3),
    ],
)
def test_values_out_of_range_or_of_the_wrong_type_are_refused(member: str, value: object) -> None:
    error = refusal(**({"text": "a"} | {member: value}))
    assert error.code == "invalid-field"
    assert fields_of(error)[0].split(".")[0] == member


@pytest.mark.parametrize("char", ["\x00", "\x07", "\n", "\x7f", "\x85", "\x9b"])
def test_titles_and_metadata_keys_hold_no_control_characters(char: str) -> None:
    assert refusal(text="a", title=f"x{char}").code == "control-character"
    assert refusal(chapters=[{"title": char, "text": "a"}]).code == "control-character"
    assert refusal(text="a", metadata={f"k{char}": "v"}).code == "control-character"


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"7", b"null", b"true"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        read_submission(body)
    assert caught.value.code == "invalid-field"


def test_a_refusal_never_repeats_the_text() -> None:
    secret = "the canary sings " * 1_000
    error = refusal(text=secret, speed=secret, chapters=secret, metadata={"k": [secret]}, seed=-1)
    assert "canary" not in str(error)
    assert "canary" not in json.dumps(error.fields)


def test_a_thousand_faults_are_told_briefly() -> None:
    error = refusal(text="a", **{"x" * 5_000 + str(i): i for i in range(1_000)})
    assert len(fields_of(error)) == 20
    assert len(str(error)) < 5_000


@given(st.permutations(list(EXAMPLE.items())), st.sampled_from([None, 2]))
def test_the_digest_knows_no_order_and_no_white_space(
    members: list[tuple[str, object]], indent: int | None
) -> None:
    body = json.dumps(dict(members), indent=indent).encode()
    assert read_submission(body).digest == read(**EXAMPLE).digest


def test_a_default_spelled_out_asks_for_the_same() -> None:
    plain = read(text="a").digest
    assert read(text="a", tier="standard", speed=1, seed=0, metadata={}, voice=None).digest == plain
    assert read(text="a", pauses={}).digest == plain


@pytest.mark.parametrize(
    "change", [{"text": "b"}, {"seed": 1}, {"tier": "bulk"}, {"pauses": {"sentence_s": 1}}]
)
def test_every_other_wish_has_another_digest(change: dict[str, object]) -> None:
    assert read(**({"text": "a"} | change)).digest != read(text="a").digest
