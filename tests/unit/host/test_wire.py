"""Frames survive any chopping, and nonsense is recognised as such."""

import contextlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hosts import utterance
from worker.host.protocol import (
    pack_samples,
    parse_utterance,
    unpack_samples,
    utterance_header,
)
from worker.host.wire import BadFrameError, Frame, FrameReader, encode

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
frames = st.builds(Frame, st.dictionaries(st.text(), json_values, max_size=4), st.binary())


@given(st.lists(frames, max_size=5), st.data())
def test_frames_come_out_as_they_went_in_however_the_bytes_arrive(
    sent: list[Frame], data: st.DataObject
) -> None:
    stream = b"".join(encode(frame.header, frame.payload) for frame in sent)
    reader, received = FrameReader(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        received += reader.feed(stream[:cut])
        stream = stream[cut:]
    assert received == sent


@given(st.binary(max_size=300))
def test_noise_is_a_bad_frame_or_an_unfinished_one_and_nothing_else(noise: bytes) -> None:
    with contextlib.suppress(BadFrameError):
        FrameReader(max_payload_bytes=0).feed(noise)


@given(json_values)
def test_a_say_frame_of_any_shape_is_an_utterance_or_a_bad_frame(value: object) -> None:
    with pytest.raises(BadFrameError):
        parse_utterance(Frame({"op": "say", "utterance": value}))


@pytest.mark.parametrize("field", ["id", "text", "voice", "speed", "seed", "due_at", "params"])
def test_every_field_of_an_utterance_must_have_its_type(field: str) -> None:
    header = utterance_header(utterance())
    for wrong in (None, True, [], {"a": 1} if field != "params" else 1, 10**400):
        if field == "seed" and wrong == 10**400:
            continue
        with pytest.raises(BadFrameError, match=field):
            parse_utterance(Frame({"utterance": {**header, field: wrong}}))


def test_an_utterance_survives_the_wire() -> None:
    said = utterance("Zwölf „Boxkämpfer“ 跳.", params={"style": "calm", "level": 2})
    frame = FrameReader().feed(encode({"op": "say", "utterance": utterance_header(said)}))[0]
    assert parse_utterance(frame) == said


def test_audio_survives_the_wire_bit_for_bit() -> None:
    samples = np.random.default_rng(1).standard_normal(1_001).astype(np.float32)
    assert np.array_equal(unpack_samples(pack_samples(samples)), samples)
    assert np.array_equal(unpack_samples(pack_samples(samples[::2])), samples[::2])
    with pytest.raises(BadFrameError):
        unpack_samples(b"123")


def test_a_header_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(ValueError, match="bounds"):
        encode({"op": "x" * 300_000})


def test_constants_that_json_does_not_have_are_refused() -> None:
    for head in (b'{"a":NaN}', b'{"a":-Infinity}'):
        assert json.loads(head)
        with pytest.raises(BadFrameError):
            FrameReader().feed(struct.pack("!II", len(head), 0) + head)
