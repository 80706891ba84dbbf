"""Our own encoders keep the marks: what assembly would deliver can be verified."""

import io

import pytest
import soundfile
import soxr

from shared.jobs import AudioFormat
from tests.unit.watermark.conftest import RATE_HZ, marked
from worker.assembly.encoders import encoder_for
from worker.engines.base import Samples
from worker.watermark.highband import read_high
from worker.watermark.keys import MarkKey
from worker.watermark.trace import Trace
from worker.watermark.verify import verify


def delivered(samples: Samples, audio_format: AudioFormat, rate_hz: int) -> Samples:
    """What a player hears of the file."""
    encoder = encoder_for(audio_format, rate_hz)
    data = encoder.write(samples) + encoder.finish()
    head = encoder.head()
    decoded, decoded_hz = soundfile.read(io.BytesIO(head + data[len(head) :]), dtype="float32")
    assert decoded_hz == rate_hz
    return decoded


@pytest.mark.parametrize(
    ("audio_format", "rate_hz"),
    [
        (AudioFormat.MP3, 8_000),
        (AudioFormat.MP3, 22_050),
        (AudioFormat.MP3, 44_100),
        (AudioFormat.FLAC, 24_000),
        (AudioFormat.WAV, 48_000),
    ],
)
def test_every_format_keeps_what_its_rate_can_carry(
    speech: Samples, key: MarkKey, trace: Trace, audio_format: AudioFormat, rate_hz: int
) -> None:
    made = marked(soxr.resample(speech[: 10 * RATE_HZ], RATE_HZ, rate_hz), rate_hz, key, trace)
    heard = delivered(made, audio_format, rate_hz)
    found = verify(key, trace, [heard], rate_hz)
    assert found.verified
    assert found.blind is True
    high = read_high((key,), heard, rate_hz)
    assert (high.trace_id == trace.trace_id) is (rate_hz >= 44_100)
