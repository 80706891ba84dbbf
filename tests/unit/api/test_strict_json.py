import json
import math
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from api.strict_json import MAX_DEPTH, MAX_VALUES, read_json, shown_name
from shared.errors import UsageError

plain_text = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=20,
)


def refusal(body: bytes) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_json(body)
    return caught.value


def is_deep(value: object, left: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list) and (left == 0 or any(is_deep(v, left - 1) for v in value))


@given(json_values, st.sampled_from([True, False]))
def test_sound_json_reads_as_the_standard_parser_reads_it(
    value: object, ascii_only: object
) -> None:
    assume(not is_deep(value, MAX_DEPTH))
    body = json.dumps(value, ensure_ascii=bool(ascii_only)).encode()
    assert read_json(body) == json.loads(body)


@given(st.binary(max_size=200) | st.text('{}[]",:\\u dD8e0-1.\n', max_size=60).map(str.encode))
def test_any_bytes_are_read_as_the_standard_parser_reads_them_or_refused(body: bytes) -> None:
    try:
        value = read_json(body)
    except UsageError:
        return
    assert json.loads(body) == value


def test_a_byte_order_mark_is_read_over() -> None:
    assert read_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad-json"),
        (b"   \n", "bad-json"),
        (b"{", "bad-json"),
        (b'{"a": 1,}', "bad-json"),
        (b"{'a': 1}", "bad-json"),
        (b'{"a": 1} {"b": 2}', "bad-json"),
        (b'{"a": "line\nbreak"}', "bad-json"),
        (b'{"a": "\\x41"}', "bad-json"),
        (b'{"a": "open', "bad-json"),
        (b'{"a": "open\\', "bad-json"),
        (b"\xff\xfe{\x00", "bad-utf8"),
        (b'{"a": "\xc3("}', "bad-utf8"),
        (b'{"a": "\xed\xa0\x80"}', "bad-utf8"),  # a surrogate, encoded
        (b'{"a": "\xc0\x80"}', "bad-utf8"),  # an overlong NUL
        (b'{"a": 1, "a": 2}', "duplicate-key"),
        (b'{"x": {"a": 1, "\\u0061": 2}}', "duplicate-key"),
        (b'{"a": NaN}', "bad-number"),
        (b'{"a": -Infinity}', "bad-number"),
        (b'{"a": 1e999}', "bad-number"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "bad-number"),
        (b'{"a": "\\ud800"}', "lone-surrogate"),
        (b'{"a": {"b": ["", "xy\\udfff"]}}', "lone-surrogate"),
        (b'{"\\ud800": 1}', "lone-surrogate"),
        (b'"\\ud800"', "lone-surrogate"),
        (b"[" * 50_000, "json-too-deep"),
        (b'{"a":' * 50_000, "json-too-deep"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "json-too-deep"),
        (b"[" + b"0," * MAX_VALUES + b"0]", "json-too-complex"),
    ],
)
def test_each_unsound_body_is_refused_with_its_code(body: bytes, code: str) -> None:
    assert refusal(body).code == code


def test_the_place_of_a_fault_is_told() -> None:
    syntax = refusal(b'{"a": 1,\n "b": }')
    assert (syntax.fields["line"], syntax.fields["column"]) == (2, 7)
    assert refusal(b'{"a": "ab\xffcd"}').fields["offset"] == 9
    surrogate = refusal(b'{"chapters": [{"text": "ab\\ud800"}]}')
    assert surrogate.fields == {"field": "chapters.0.text", "offset": 2}


def test_a_surrogate_pair_is_one_character() -> None:
    assert read_json(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    "body",
    [
        b'"' * 8_000_001,
        b'{"text": "' + b'\\"' * 4_000_000,
        b'"",' * 3_000_000,
        b'{"text": "' + b"\\" * 8_000_001,
    ],
)
def test_hostile_bodies_of_eight_megabytes_cost_no_more_than_honest_ones(body: bytes) -> None:
    began = time.process_time()
    refusal(body)
    assert time.process_time() - began < 5  # a quadratic scan would take hours


def test_many_values_inside_a_string_are_only_text() -> None:
    text = "[{," * MAX_VALUES
    assert read_json(json.dumps({"text": text}).encode()) == {"text": text}


def test_names_are_shown_short_and_printable() -> None:
    assert shown_name("a" * 1_000) == "a" * 80 + "..."
    assert shown_name("\x1b[31m\u202e\ud800") == "?[31m\\u202e\\ud800"


def test_large_but_finite_numbers_pass() -> None:
    value = read_json(b"[1e308, -1e308, 1e-999]")
    assert isinstance(value, list)
    assert all(math.isfinite(number) for number in value)
