"""Whether a file carries the mark it was given: the known mark along the whole, one blind excerpt.

Meant for what an encoder has just made: the alignment is known but for the codec's delay, so that
an hour costs seconds. Streams in constant memory. Knows no codec and no store.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from worker.engines.base import Samples
from worker.watermark.alignment import Alignment, earlier
from worker.watermark.chips import ROWS, ChipMap
from worker.watermark.convolution import encode
from worker.watermark.detect import Detector
from worker.watermark.evidence import known_score
from worker.watermark.heard import FINE_HOP_S, HOP, Heard, listen
from worker.watermark.keys import Keyring, MarkKey
from worker.watermark.trace import Trace, payload
from worker.watermark.windows import windows

KNOWN_THRESHOLD = 8.0  # of the whole: by chance once in 10^13 files
PIECE_THRESHOLD = 2.0  # of each piece: a file marked in part only must not pass
LEAST_SPEECH_S = 5.0  # below, a mark may be too short to be verified
_PIECE_S = 20.0
_LATEST_S = 0.2  # what a codec may put in front
_TRUSTED_S = 6.0  # of speech in a piece, before it is held against its threshold
_SPEECH_DB = -40.0  # of 20 ms, against the loud ones of its piece
_NOISE_DB = -80.0  # below full scale nothing is speech


@dataclass(frozen=True, slots=True)
class Verification:
    """What a file's check found. `z` is the score of the known mark along the whole file.

    `weak_s` are the starts of pieces with enough speech in which the mark is missing. `blind` says
    whether the detector, told nothing, read this trace id from the busiest seconds; None: there was
    too little speech to ask.
    """

    z: float
    speech_s: float
    delay_s: float
    weak_s: tuple[float, ...]
    blind: bool | None

    @property
    def too_short(self) -> bool:
        """True when there is too little speech to hold a verdict against the file."""
        return self.speech_s < LEAST_SPEECH_S

    @property
    def verified(self) -> bool:
        """The mark is there, all along, and can be read blindly where there is enough to read."""
        return self.z >= KNOWN_THRESHOLD and not self.weak_s and self.blind is not False


def verify(key: MarkKey, trace: Trace, blocks: Iterable[Samples], rate_hz: int) -> Verification:
    """Check decoded float32 mono blocks of a whole file against the trace it was marked with."""
    known = _Known(key, trace)
    speech_s = busiest_s = 0.0
    busiest_piece = np.zeros(0, np.float32)
    weak = list[float]()
    for start_s, piece in windows(blocks, rate_hz, _PIECE_S):
        spoken_s = _speech_s(piece, rate_hz)
        if spoken_s == 0.0:
            continue
        speech_s += spoken_s
        if spoken_s > busiest_s:
            busiest_s, busiest_piece = spoken_s, piece
        if known.hear(piece, rate_hz, start_s) < PIECE_THRESHOLD and spoken_s >= _TRUSTED_S:
            weak.append(start_s)
    blind = None
    if speech_s >= LEAST_SPEECH_S and busiest_s >= min(LEAST_SPEECH_S, speech_s) / 2:
        found = Detector(Keyring((key,))).excerpt(busiest_piece, rate_hz)
        blind = found.trace_id == trace.trace_id
    return Verification(known.z, speech_s, known.delay_s, tuple(weak), blind)


class _Known:
    """The known mark's score so far. The codec's delay is settled by the first clear piece."""

    def __init__(self, key: MarkKey, trace: Trace) -> None:
        self._chips = ChipMap(key)
        self._coded = encode(payload(key, trace.trace_id))
        self._start = Alignment(ROWS * trace.start_block, 0.0, 1.0, 0.0)
        self._settled = False
        self._total = self._energy = 0.0
        self.delay_s = 0.0
        self._best_unsettled = 0.0

    @property
    def z(self) -> float:
        """The score of all pieces; until the delay is settled, that of the best one."""
        if not self._settled:
            return self._best_unsettled
        return self._total / math.sqrt(self._energy) if self._energy > 0 else 0.0

    def hear(self, piece: Samples, rate_hz: int, start_s: float) -> float:
        """Take a piece that begins at `start_s`; returns its score."""
        if self._settled:  # nothing is searched any more: coarse frames that begin with a row
            here = self._at(start_s, self.delay_s)
            heard = listen(piece[round(here.shift_s * rate_hz) :], rate_hz, hop=HOP)
            total, energy = known_score(self._chips, self._coded, heard.tiles(), here.row)
        else:
            heard = listen(piece, rate_hz)
            total, energy = self._score(heard, start_s, self._search(heard, start_s))
        z = total / math.sqrt(energy) if energy > 0 else 0.0
        if not self._settled:
            self._best_unsettled = max(self._best_unsettled, z)
            self._settled = z >= KNOWN_THRESHOLD
        if self._settled:
            self._total += total
            self._energy += energy
        return z

    def _search(self, heard: Heard, start_s: float) -> float:
        """The delay at which the piece scores best."""
        coarse = np.arange(-2 * FINE_HOP_S, _LATEST_S, 2 * FINE_HOP_S)
        best = max(coarse, key=lambda delay_s: self._z(heard, start_s, delay_s))
        near = (best - FINE_HOP_S, best, best + FINE_HOP_S)
        self.delay_s = float(max(near, key=lambda delay_s: self._z(heard, start_s, delay_s)))
        return self.delay_s

    def _z(self, heard: Heard, start_s: float, delay_s: float) -> float:
        total, energy = self._score(heard, start_s, delay_s)
        return total / math.sqrt(energy) if energy > 0 else 0.0

    def _score(self, heard: Heard, start_s: float, delay_s: float) -> tuple[float, float]:
        here = self._at(start_s, delay_s)
        return known_score(self._chips, self._coded, heard.tiles(here.shift_s), here.row)

    def _at(self, start_s: float, delay_s: float) -> Alignment:
        """Where a piece that begins at `start_s` lies on the map."""
        return earlier(replace(self._start, shift_s=delay_s), -start_s)


def _speech_s(piece: Samples, rate_hz: int) -> float:
    """Seconds of a piece in which somebody speaks."""
    length = round(0.02 * rate_hz)
    whole = piece[: len(piece) // length * length].reshape(-1, length)
    if not len(whole):
        return 0.0
    power = np.einsum("ij,ij->i", whole, whole) / length
    loud = max(float(np.quantile(power, 0.95)) * 10 ** (_SPEECH_DB / 10), 10 ** (_NOISE_DB / 10))
    return float(np.count_nonzero(power > loud)) * 0.02
