"""What the mark costs: time to embed, memory over a day, time to detect and to verify."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks.watermark.attacks import resampled
from benchmarks.watermark.speech import RATE_HZ
from worker.engines.base import Samples
from worker.watermark.detect import Detector, Speeds
from worker.watermark.grid import RATES_HZ
from worker.watermark.keys import Keyring, MarkKey
from worker.watermark.marker import Marker
from worker.watermark.trace import trace_of
from worker.watermark.verify import verify

KEY = MarkKey(1, bytes(range(32)))
TRACE = trace_of(KEY, "job", "audio.mp3")
_BLOCK_S = 2.0


def embedding_x_real_time(samples: Samples) -> Mapping[int, float]:
    """Audio seconds per CPU second at every delivery rate, of three runs the median."""
    return {
        rate_hz: _embedding(resampled(samples, RATE_HZ, rate_hz), rate_hz) for rate_hz in RATES_HZ
    }


def _embedding(samples: Samples, rate_hz: int) -> float:
    figures = []
    for _ in range(3):
        marker, began_s = Marker(KEY, TRACE, rate_hz), time.process_time()
        step = round(_BLOCK_S * rate_hz)
        for first in range(0, len(samples), step):
            marker.write(samples[first : first + step])
        marker.finish()
        figures.append(len(samples) / rate_hz / (time.process_time() - began_s))
    return round(statistics.median(figures), 1)


def detecting_s(samples: Samples) -> Mapping[str, float]:
    """CPU seconds for 15 s: at the marked speed, and with the full search where nothing is."""
    detector, excerpt = Detector(Keyring((KEY,))), samples[: 15 * RATE_HZ]
    figures = {}
    for speeds, tries in ((Speeds.MARKED, 5), (Speeds.WIDE, 3)):
        taken = []
        for _ in range(tries):
            began_s = time.process_time()
            detector.excerpt(excerpt, RATE_HZ, speeds=speeds)
            taken.append(time.process_time() - began_s)
        figures[str(speeds)] = round(statistics.median(taken), 3)
    return figures


def verifying_s_an_hour(
    samples: Samples, *, rate_hz: int = 44_100, length_s: float = 3_600
) -> float:
    """CPU seconds to verify an hour; marking and decoding are left out."""
    piece = resampled(samples, RATE_HZ, rate_hz)
    marking_s = 0.0

    def blocks() -> Iterator[Samples]:
        nonlocal marking_s
        marker = Marker(KEY, TRACE, rate_hz)
        for _ in range(round(length_s * rate_hz / len(piece))):
            began_s = time.process_time()
            block = marker.write(piece)
            marking_s += time.process_time() - began_s
            yield block

    began_s = time.process_time()
    found = verify(KEY, TRACE, blocks(), rate_hz)
    if not found.verified:
        raise RuntimeError(f"a marked file was not verified: {found}")
    return round((time.process_time() - began_s - marking_s) * 3_600 / length_s, 2)


def embedding_memory_mb(hours: float) -> Mapping[str, float]:
    """Peak memory of a process that marks so many hours of noise, early on and at the end."""
    command = [sys.executable, "-m", "benchmarks.watermark.costs", str(hours)]
    early, late, seconds = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()
    return {"early_mb": float(early), "end_mb": float(late), "cpu_s": float(seconds)}


def _mark_hours(hours: float) -> None:
    rate_hz = 44_100
    marker = Marker(KEY, TRACE, rate_hz)
    noise = np.random.default_rng(0).standard_normal(10 * rate_hz).astype(np.float32) * 0.1
    total, early = round(hours * 360), 0.0
    for number in range(total):
        marker.write(noise)
        if number == min(60, total // 2):
            early = _peak_mb()
    marker.finish()
    print(early, _peak_mb(), time.process_time())


def _peak_mb() -> float:
    """Of this process alone: getrusage begins with the peak of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.partition("VmHWM:")[2].split()[0]) / 1_024


if __name__ == "__main__":
    _mark_hours(float(sys.argv[1]))
