"""How fast a book is stitched and encoded on one core, and that its length costs no memory.

Segments are decoded from 24-bit FLAC, stitched, converted, encoded and cut into parts for a sink
that throws them away: everything that assembly does but talking to the store.

Run: python -m benchmarks.assembly --json -
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.report import Bar, at_least, at_most, emit, parser
from shared.jobs import DEFAULT_SAMPLE_RATE_HZ, AudioFormat
from worker.assembly.encoders import encoder_for
from worker.assembly.multipart import write_audio
from worker.assembly.segment_audio import decode_segment, encode_segment
from worker.assembly.stitch import Clip, Stitcher

ENGINE_RATE_HZ = 24_000
LEAST_XRT = {AudioFormat.WAV: 1_000.0, AudioFormat.FLAC: 800.0, AudioFormat.MP3: 200.0}
SHORT_S, LONG_S = 360.0, 7_200.0
MOST_GROWTH_BYTES = 40 * 1024 * 1024  # two parts of 8 MiB, each copied once, and the allocator


class Nowhere:
    """A sink that counts."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def put_part(self, number: int, data: bytes) -> None:
        """Forget the part."""
        del number
        self.size_bytes += len(data)


def syllables(seconds: float, seed: int) -> np.ndarray:
    """Sound that costs an encoder what speech costs: voiced syllables, breath, silent ends."""
    chance = np.random.default_rng(seed)
    t = np.arange(round(seconds * ENGINE_RATE_HZ)) / ENGINE_RATE_HZ
    loudness = np.clip(np.sin(2 * np.pi * 4 * t), 0, None)
    pitch = 2 * np.pi * (110 + seed) * t
    voiced = sum(np.sin(n * pitch) / n for n in range(1, 20))
    breath = chance.standard_normal(len(t)) * 0.05
    silence = np.zeros(ENGINE_RATE_HZ // 4)
    return np.concatenate([silence, 0.2 * loudness * (voiced + breath), silence]).astype(np.float32)


def clips(stored: list[bytes], seconds: float) -> Iterator[Clip]:
    """Clips of about so many seconds in all, each decoded as if it had just been fetched."""
    index, done_s = 0, 0.0
    while done_s < seconds:
        samples, rate_hz = decode_segment(stored[index % len(stored)])
        yield Clip(index, samples, 0.3)
        index, done_s = index + 1, done_s + len(samples) / rate_hz


def assemble(audio_format: AudioFormat, seconds: float) -> dict[str, float]:
    """CPU seconds, sizes and the highest memory of this process for one file."""
    stored = [encode_segment(syllables(2 + n, n), ENGINE_RATE_HZ) for n in range(5)]
    rate_hz = DEFAULT_SAMPLE_RATE_HZ[audio_format]
    stitcher = Stitcher(in_rate_hz=ENGINE_RATE_HZ, out_rate_hz=rate_hz)
    sink = Nowhere()
    began_s = time.process_time()
    write_audio(stitcher.blocks(clips(stored, seconds)), encoder_for(audio_format, rate_hz), sink)
    cpu_s = time.process_time() - began_s
    audio_s = stitcher.total_samples / rate_hz
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "audio_s": round(audio_s, 1),
        "rate_hz": rate_hz,
        "bytes_per_s": round(sink.size_bytes / audio_s),
        "xrt_per_core": round(audio_s / cpu_s, 1),
        "peak_rss_bytes": peak * (1 if sys.platform == "darwin" else 1024),
    }


def main() -> None:
    """Measure every format, each file in a process of its own, and print the report."""
    args = parser(__doc__ or "").parse_args()
    figures: dict[str, object] = {}
    bars: list[Bar] = []
    context = multiprocessing.get_context("spawn")
    for audio_format in AudioFormat:
        with context.Pool(1, maxtasksperchild=1) as pool:
            short, long = pool.starmap(
                assemble, [(audio_format, SHORT_S), (audio_format, LONG_S)], chunksize=1
            )
        figures[audio_format] = {"short": short, "long": long}
        growth = long["peak_rss_bytes"] - short["peak_rss_bytes"]
        xrt = long["xrt_per_core"]
        bars.append(at_least(f"{audio_format}_xrt_per_core", xrt, LEAST_XRT[audio_format]))
        bars.append(at_most(f"{audio_format}_rss_growth_bytes", growth, MOST_GROWTH_BYTES))
    emit(figures, bars, args.json)
    if not all(bar.ok for bar in bars):
        sys.exit(1)


if __name__ == "__main__":
    main()
