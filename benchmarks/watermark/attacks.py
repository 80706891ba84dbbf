"""What may happen to a file on its way: codecs, rates, noise, rooms, filters, speed. Pure, seeded.

Every attack takes float32 mono samples and their rate, and returns samples and a rate. Codecs run
in memory; delays are left as the codec makes them.
"""

import io
from collections.abc import Callable, Mapping
from fractions import Fraction

import av
import numpy as np
import soundfile
import soxr
from scipy.signal import butter, fftconvolve, firwin2, sosfilt

from worker.engines.base import Samples

Heard = tuple[Samples, int]
Attack = Callable[[Samples, int, np.random.Generator], Heard]


def encoded(
    samples: Samples, rate_hz: int, *, codec: str, container: str, kbps: int, **options: str
) -> Heard:
    """Through one of FFmpeg's codecs and back."""
    sink = io.BytesIO()
    with av.open(sink, "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate_hz, layout="mono", options=options)
        if kbps:
            stream.bit_rate = kbps * 1_000
        pcm = np.clip(np.rint(samples * 32_767), -32_768, 32_767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(pcm[None], format="s16", layout="mono")
        frame.sample_rate, frame.time_base, frame.pts = rate_hz, Fraction(1, rate_hz), 0
        for packet in stream.encode(frame):
            out.mux(packet)
        for packet in stream.encode(None):
            out.mux(packet)
    sink.seek(0)
    with av.open(sink) as source:
        stream = source.streams.audio[0]
        to_float = av.AudioResampler(format="flt", layout="mono", rate=stream.rate)
        pieces = [
            piece.to_ndarray()[0]
            for frame in source.decode(stream)
            for piece in to_float.resample(frame)
        ]
        return np.concatenate(pieces).astype(np.float32), stream.rate


def mp3(kbps: int) -> Attack:
    """LAME at a constant rate."""
    return lambda samples, rate_hz, _: encoded(
        samples, rate_hz, codec="libmp3lame", container="mp3", kbps=kbps
    )


def aac(kbps: int) -> Attack:
    """FFmpeg's own AAC-LC."""
    return lambda samples, rate_hz, _: encoded(
        samples, rate_hz, codec="aac", container="adts", kbps=kbps
    )


def opus(kbps: int, application: str = "audio") -> Attack:
    """Libopus at 48 kHz."""
    return lambda samples, rate_hz, _: encoded(
        resampled(samples, rate_hz, 48_000),
        48_000,
        codec="libopus",
        container="ogg",
        kbps=kbps,
        application=application,
    )


def vorbis(samples: Samples, rate_hz: int, _: np.random.Generator) -> Heard:
    """Libvorbis at its lowest quality but one."""
    sink = io.BytesIO()
    with soundfile.SoundFile(
        sink, "w", rate_hz, 1, format="OGG", subtype="VORBIS", compression_level=1.0
    ) as file:
        for first in range(0, len(samples), rate_hz):  # long single writes have crashed libvorbis
            file.write(samples[first : first + rate_hz])
    sink.seek(0)
    decoded, decoded_hz = soundfile.read(sink, dtype="float32")
    return decoded, decoded_hz


def g711(samples: Samples, rate_hz: int, _: np.random.Generator) -> Heard:
    """Telephone: 8 kHz, µ-law."""
    narrow = np.clip(resampled(samples, rate_hz, 8_000), -1, 1).astype(np.float64)
    mu = 255.0
    code = np.rint(np.sign(narrow) * np.log1p(mu * np.abs(narrow)) / np.log1p(mu) * 127) / 127
    wide = np.sign(code) * np.expm1(np.abs(code) * np.log1p(mu)) / mu
    return wide.astype(np.float32), 8_000


def rate(to_hz: int) -> Attack:
    """Another sample rate, and left there."""
    return lambda samples, rate_hz, _: (resampled(samples, rate_hz, to_hz), to_hz)


def gain(db: float) -> Attack:
    """Louder or softer, clipped at full scale."""
    factor = 10 ** (db / 20)
    return lambda samples, rate_hz, _: (
        np.clip(samples * factor, -1, 1).astype(np.float32),
        rate_hz,
    )


def noise(snr_db: float) -> Attack:
    """White noise, so many dB below the mean power of the excerpt."""

    def add(samples: Samples, rate_hz: int, draw: np.random.Generator) -> Heard:
        level = np.sqrt(np.mean(samples.astype(np.float64) ** 2)) * 10 ** (-snr_db / 20)
        noisy = samples + draw.standard_normal(len(samples)) * level
        return noisy.astype(np.float32), rate_hz

    return add


def equaliser(db: float) -> Attack:
    """A curve that swings by `db` both ways over the octaves."""

    def filtered(samples: Samples, rate_hz: int, draw: np.random.Generator) -> Heard:
        nyquist = rate_hz / 2
        points = np.array([0, 125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, nyquist])
        points = np.unique(np.minimum(points, nyquist))
        curve = 10 ** (draw.choice([-db, db], len(points)) / 20)
        taps = firwin2(1_023, points, curve, fs=rate_hz)
        return fftconvolve(samples, taps).astype(np.float32), rate_hz

    return filtered


def reverb(t60_s: float) -> Attack:
    """A diffuse room: decaying noise, together as strong as the direct sound."""

    def heard(samples: Samples, rate_hz: int, draw: np.random.Generator) -> Heard:
        time_s = np.arange(round(1.2 * t60_s * rate_hz)) / rate_hz
        tail = draw.standard_normal(len(time_s)) * 10 ** (-3 * time_s / t60_s)
        tail[: round(0.002 * rate_hz)] = 0
        tail /= np.sqrt(np.sum(tail**2))
        tail[0] = 1.0
        return fftconvolve(samples, tail).astype(np.float32) * np.float32(0.7), rate_hz

    return heard


def band(low_hz: float, high_hz: float) -> Attack:
    """A band-pass of the sixth order."""

    def passed(samples: Samples, rate_hz: int, _: np.random.Generator) -> Heard:
        sections = butter(6, [low_hz, high_hz], "bandpass", fs=rate_hz, output="sos")
        return sosfilt(sections, samples).astype(np.float32), rate_hz

    return passed


def speed(factor: float) -> Attack:
    """Played faster or slower, pitch and all."""

    def played(samples: Samples, rate_hz: int, _: np.random.Generator) -> Heard:
        grain = 10_000
        return resampled(samples, round(grain * factor), grain), rate_hz

    return played


def tempo(factor: float) -> Attack:
    """Faster or slower at the same pitch (FFmpeg's `atempo`)."""

    def played(samples: Samples, rate_hz: int, _: np.random.Generator) -> Heard:
        graph = av.filter.Graph()
        source = graph.add_abuffer(
            sample_rate=rate_hz, format="flt", layout="mono", time_base=Fraction(1, rate_hz)
        )
        stretch = graph.add("atempo", str(factor))
        sink = graph.add("abuffersink")
        source.link_to(stretch)
        stretch.link_to(sink)
        graph.configure()
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate, frame.time_base, frame.pts = rate_hz, Fraction(1, rate_hz), 0
        source.push(frame)
        source.push(None)
        pieces = []
        while True:
            try:
                pieces.append(sink.pull().to_ndarray()[0])
            except (av.error.EOFError, av.error.BlockingIOError):
                return np.concatenate(pieces), rate_hz

    return played


def chain(*attacks: Attack) -> Attack:
    """One after the other."""

    def all_of(samples: Samples, rate_hz: int, draw: np.random.Generator) -> Heard:
        for attack in attacks:
            samples, rate_hz = attack(samples, rate_hz, draw)
        return samples, rate_hz

    return all_of


def untouched(samples: Samples, rate_hz: int, _: np.random.Generator) -> Heard:
    """PCM, 16 bits."""
    return (np.rint(np.clip(samples, -1, 1) * 32_767) / 32_767).astype(np.float32), rate_hz


def resampled(samples: Samples, from_hz: int, to_hz: int) -> Samples:
    """The same sound at another rate."""
    if from_hz == to_hz:
        return samples
    made: Samples = soxr.resample(samples, from_hz, to_hz, quality="HQ")
    return made


ATTACKS: Mapping[str, Attack] = {
    "pcm": untouched,
    "mp3-128k": mp3(128),
    "mp3-64k": mp3(64),
    "mp3-32k": mp3(32),
    "aac-128k": aac(128),
    "aac-64k": aac(64),
    "aac-32k": aac(32),
    "opus-64k": opus(64),
    "opus-24k": opus(24),
    "opus-12k-voip": opus(12, "voip"),
    "vorbis-q0": vorbis,
    "16khz": rate(16_000),
    "8khz": rate(8_000),
    "g711": g711,
    "gain+12db": gain(12),
    "gain-12db": gain(-12),
    "noise-20db": noise(20),
    "noise-10db": noise(10),
    "eq-6db": equaliser(6),
    "reverb-0.3s": reverb(0.3),
    "telephone-band": band(300, 3_400),
    "speed+2%": speed(1.02),
    "speed-2%": speed(0.98),
    "tempo+2%": tempo(1.02),
    "chain": chain(mp3(64), opus(24), rate(8_000)),
}
