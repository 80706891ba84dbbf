"""Encoders and the multipart writer: exact lengths, true heads, an independent decoder."""

import io
import struct

import av
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.jobs import SAMPLE_RATES_HZ, AudioFormat
from worker.assembly.encoders import encoder_for
from worker.assembly.multipart import write_audio, write_bytes
from worker.assembly.segment_audio import decode_segment, encode_segment
from worker.assembly.wav import WavEncoder


class Parts:
    """A sink that keeps what it is given, and in which order."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.parts: dict[int, bytes] = {}

    def put_part(self, number: int, data: bytes) -> None:
        self.order.append(number)
        self.parts[number] = data

    def whole(self) -> bytes:
        assert sorted(self.parts) == list(range(1, len(self.parts) + 1))
        return b"".join(self.parts[n] for n in sorted(self.parts))


def chirp(samples: int, rate: int) -> np.ndarray:
    t = np.arange(samples) / rate
    return (0.4 * np.sin(2 * np.pi * (150 + 300 * t) * t)).astype(np.float32)


def encode(audio_format: AudioFormat, rate: int, samples: np.ndarray, part_bytes: int) -> Parts:
    sink = Parts()
    blocks = [samples[i : i + 4_801] for i in range(0, len(samples), 4_801)]
    size = write_audio(blocks, encoder_for(audio_format, rate), sink, part_bytes=part_bytes)
    assert size == len(sink.whole())
    return sink


def decode_with_av(data: bytes) -> tuple[int, int]:
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(audio=0))
    return sum(frame.samples for frame in frames), frames[0].sample_rate


@pytest.mark.parametrize("rate", SAMPLE_RATES_HZ)
@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_a_file_decodes_to_exactly_what_went_in(audio_format: AudioFormat, rate: int) -> None:
    samples = chirp(rate * 2 + 77, rate)
    data = encode(audio_format, rate, samples, part_bytes=20_000).whole()
    heard, heard_rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert (len(heard), heard_rate) == (len(samples), rate)
    assert decode_with_av(data) == (len(samples), rate)
    if audio_format is AudioFormat.MP3:
        assert np.corrcoef(heard, samples)[0, 1] > 0.999  # in place, to the sample
    else:
        np.testing.assert_allclose(heard, samples, atol=1 / 32_768)


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_the_first_part_comes_last_and_short_files_have_one(audio_format: AudioFormat) -> None:
    long = encode(audio_format, 24_000, chirp(24_000 * 20, 24_000), part_bytes=30_000)
    assert long.order[-1] == 1
    assert len(long.order) > 2
    assert encode(audio_format, 24_000, chirp(500, 24_000), part_bytes=100_000).order == [1]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(AudioFormat)), st.lists(st.integers(0, 3_000), min_size=1, max_size=10))
def test_the_block_split_never_shows(audio_format: AudioFormat, cuts: list[int]) -> None:
    samples = chirp(max(1, sum(cuts)), 24_000)
    in_one = Parts()
    write_audio([samples], encoder_for(audio_format, 24_000), in_one)
    in_many, position, blocks = Parts(), 0, []
    for cut in cuts:
        blocks.append(samples[position : position + cut])
        position += cut
    blocks.append(samples[position:])
    write_audio(blocks, encoder_for(audio_format, 24_000), in_many)
    if audio_format is AudioFormat.FLAC:  # libFLAC's frames follow its own buffer: compare sound
        one, many = (soundfile.read(io.BytesIO(p.whole()))[0] for p in (in_one, in_many))
        np.testing.assert_array_equal(one, many)
    else:
        assert in_one.whole() == in_many.whole()


def test_a_wav_beyond_four_gibibytes_becomes_rf64_with_the_same_head_length() -> None:
    encoder = WavEncoder(48_000)
    encoder.write(np.zeros(1, np.float32))
    small = encoder.head()
    encoder._data_bytes = 5 * 2**30
    large = encoder.head()
    assert len(small) == len(large) == 80
    assert (small[:4], large[:4]) == (b"RIFF", b"RF64")
    assert large[12:16] == b"ds64"
    riff, data, count = struct.unpack_from("<QQQ", large, 20)
    assert (riff, data, count) == (5 * 2**30 + 72, 5 * 2**30, 5 * 2**29)


def test_what_is_too_loud_is_clipped_and_never_wraps() -> None:
    loud = np.array([2.0, -2.0, 1.0, -1.0] * 1_000, np.float32)
    data = encode(AudioFormat.FLAC, 24_000, loud, part_bytes=10**6).whole()
    heard, _ = soundfile.read(io.BytesIO(data), dtype="int16")
    assert set(np.unique(heard)) == {-32_768, 32_767}


@given(st.lists(st.binary(max_size=60), max_size=20), st.integers(1, 50))
def test_plain_bytes_are_written_whole(pieces: list[bytes], part_bytes: int) -> None:
    sink = Parts()
    assert write_bytes(pieces, sink, part_bytes=part_bytes) == sum(map(len, pieces))
    assert sink.whole() == b"".join(pieces)


def test_segment_audio_keeps_18_bits_and_damage_is_noticed() -> None:
    samples = chirp(24_000, 24_000) * 0.9
    data = encode_segment(samples, 24_000)
    heard, rate = decode_segment(data)
    assert rate == 24_000
    np.testing.assert_allclose(heard, samples, atol=2**-18)
    with pytest.raises(ValueError, match="damaged"):
        decode_segment(data[:30])
