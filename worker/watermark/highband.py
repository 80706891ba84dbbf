"""The extra mark above 18 kHz, where a file keeps such sounds: code, overlay and reader. Pure.

Chips of ±1 at 2,000 a second on a carrier of 19.2 kHz, shaped to 18.0-20.4 kHz, at -66 dBFS. One
period of 1.09 s holds pilots and every coded bit four times, and repeats through the file. A
low-pass removes it unheard, so it is never the only mark.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import soxr

from worker.engines.base import Samples
from worker.watermark.chips import CODED_BITS
from worker.watermark.convolution import decode, encode
from worker.watermark.detect import PATHS
from worker.watermark.heard import check_rate
from worker.watermark.keys import MarkKey
from worker.watermark.search import threshold
from worker.watermark.trace import payload, trace_id_in

RATES_HZ = (44_100, 48_000)
CHIPS_HZ = 2_000
CARRIER_HZ = 19_200
LEVEL_DBFS = -66.0
ROLL_OFF = 0.2
REPEATS = 4  # of each coded bit in a period
PILOTS = 516
CHIPS = PILOTS + REPEATS * CODED_BITS  # whole samples and whole cycles at both rates
FALSE_RATE = 1e-8
_PERIODS_KEPT = 3  # so that a stretch of two is a plain slice
_FINE = 2  # places tried in a chip
_PHASES = 16  # of the carrier, for the count of hypotheses
_LOUDEST = 4.0  # times the median: beyond, a line is a tone of the room's


@dataclass(frozen=True, slots=True)
class HighFinding:
    """`z` is the pilots' score; `trace_id` is None where the mark is absent or not readable."""

    present: bool
    z: float
    threshold: float
    epoch: int | None = None
    trace_id: str | None = None


class Overlay:
    """The mark of one file as samples to add. Calling it gives any stretch of them."""

    def __init__(self, key: MarkKey, trace_id: str, rate_hz: int) -> None:
        code = _Code(key)
        chips = code.chips(encode(payload(key, trace_id)))
        length = _samples(rate_hz)
        lines = np.zeros(length // 2 + 1, np.complex128)
        offsets, shape = _band()
        lines[CARRIER_HZ * CHIPS // CHIPS_HZ + offsets] = np.fft.fft(chips)[offsets % CHIPS] * shape
        period = np.fft.irfft(lines, length)
        level = 10 ** (LEVEL_DBFS / 20) / math.sqrt(np.mean(period**2))
        self._periods = np.tile((period * level).astype(np.float32), _PERIODS_KEPT)
        self._length = length

    def __call__(self, first: int, samples: int) -> Samples:
        """`samples` samples from the file's sample `first` on."""
        start = first % self._length
        if start + samples <= len(self._periods):
            return self._periods[start : start + samples]
        return np.resize(np.roll(self._periods, -start), samples)


def read_high(
    keys: tuple[MarkKey, ...], samples: Samples, rate_hz: float, *, false_rate: float = FALSE_RATE
) -> HighFinding:
    """Look for the mark of any of the keys in float32 mono samples; a second is enough of them."""
    check_rate(rate_hz)
    places = _FINE * CHIPS * _PHASES * len(keys)
    alone = threshold(places, false_rate / 2)
    with_tag = threshold(places, min(1.0, false_rate / 2 / (PATHS * len(keys) / 2**32)))
    if rate_hz < 2 * (CARRIER_HZ + CHIPS_HZ):
        return HighFinding(present=False, z=0.0, threshold=alone)
    lines = _folded(samples, rate_hz)
    best = HighFinding(present=False, z=0.0, threshold=alone)
    for key in keys:
        code = _Code(key)
        z, chips = code.aligned(lines)
        trace_id = code.read(chips) if z >= with_tag else None
        if trace_id is not None:
            return HighFinding(
                present=True, z=z, threshold=alone, epoch=key.epoch, trace_id=trace_id
            )
        if z > best.z:
            present = z >= alone
            best = HighFinding(present, z, alone, key.epoch if present else None)
    return best


class _Code:
    """Which chips of a period are pilots, which coded bit the others repeat, and their signs."""

    def __init__(self, key: MarkKey) -> None:
        self._key = key
        stream = hashlib.shake_256(key.derived("high band")).digest(5 * CHIPS)
        order = np.frombuffer(stream[: 4 * CHIPS], ">u4").argsort(kind="stable")
        bits = np.frombuffer(stream[4 * CHIPS :], np.uint8) & 1
        self._signs = 1.0 - 2.0 * bits.astype(np.float64)
        self._pilots = order[:PILOTS]
        self._data = order[PILOTS:]
        self._coded_bit = np.arange(len(self._data)) % CODED_BITS

    def chips(self, coded: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """A period of ±1."""
        chips = self._signs.copy()
        chips[self._data] *= 1.0 - 2.0 * coded[self._coded_bit].astype(np.float64)
        return chips

    def aligned(self, lines: npt.NDArray[np.complex128]) -> tuple[float, npt.NDArray[np.float64]]:
        """The best score of the pilots in a folded period, and its chips in order and phase."""
        pilots = np.zeros(CHIPS)
        pilots[self._pilots] = self._signs[self._pilots]
        expected = np.conj(np.fft.fft(pilots))
        where = np.conj(np.fft.fft(pilots**2))
        best, chips = 0.0, np.zeros(CHIPS, np.complex128)
        offsets, _ = _band()
        for fine in range(_FINE):
            late = np.exp(2j * np.pi * offsets * fine / _FINE / CHIPS)
            spectrum = np.zeros(CHIPS, np.complex128)
            np.add.at(spectrum, offsets % CHIPS, lines * late)
            heard = np.fft.ifft(spectrum)
            sums = np.fft.ifft(spectrum * expected)
            energies = np.fft.ifft(np.fft.fft(np.abs(heard) ** 2) * where).real
            scores = np.abs(sums) / np.sqrt(np.maximum(energies, 1e-30))
            place = int(scores.argmax())
            if scores[place] > best:
                best = float(scores[place])
                phase = sums[place] / max(abs(sums[place]), 1e-30)
                chips = np.roll(heard, -place) / phase
        return best, chips.real

    def read(self, chips: npt.NDArray[np.float64]) -> str | None:
        votes = chips[self._data] * self._signs[self._data]
        llrs = np.bincount(self._coded_bit, votes, minlength=CODED_BITS)
        for bits in decode(llrs.astype(np.float32), PATHS):
            trace_id = trace_id_in(self._key, bits)
            if trace_id is not None:
                return trace_id
        return None


def _folded(samples: Samples, rate_hz: float) -> npt.NDArray[np.complex128]:
    """The spectral lines of all periods together, through the matched filter."""
    sound = np.nan_to_num(samples.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    known_hz = rate_hz if rate_hz in RATES_HZ else RATES_HZ[-1]
    if known_hz != rate_hz and len(sound):
        sound = soxr.resample(sound, rate_hz, known_hz, quality="HQ")
    length = _samples(int(known_hz))
    periods = max(1, math.ceil(len(sound) / length))
    padded = np.zeros(periods * length, np.float64)
    padded[: len(sound)] = sound
    offsets, shape = _band()
    folded = np.fft.rfft(padded.reshape(periods, length).sum(axis=0))
    lines = folded[CARRIER_HZ * CHIPS // CHIPS_HZ + offsets]
    sizes = np.abs(lines)
    limit = _LOUDEST * float(np.median(sizes)) + 1e-30
    limited: npt.NDArray[np.complex128] = lines / np.maximum(sizes / limit, 1.0) * shape
    return limited


def _band() -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """Lines around the carrier, by their distance in lines, and the root raised cosine there."""
    reach = int(CHIPS * (1 + ROLL_OFF) / 2)
    offsets = np.arange(-reach, reach + 1)
    beyond = (np.abs(offsets) / CHIPS - (1 - ROLL_OFF) / 2) / ROLL_OFF
    shape = np.cos(np.pi / 2 * np.clip(beyond, 0.0, 1.0))
    return offsets, shape


def _samples(rate_hz: int) -> int:
    """Samples of a period: a whole number at both rates."""
    return rate_hz * CHIPS // CHIPS_HZ
