"""One trial of each kind, made from its cell and number alone: any shard may do any of them."""

import hashlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.watermark.attacks import ATTACKS, resampled
from benchmarks.watermark.cells import (
    HIGH_LENGTH_S,
    KEYS_A_TRIAL,
    UNMARKED_LENGTH_S,
    UNMARKED_WIDE_EVERY,
    Cell,
)
from benchmarks.watermark.journal import Record
from benchmarks.watermark.speech import RATE_HZ, crops
from worker.engines.base import Samples
from worker.watermark.chips import PERIOD_ROWS, ROWS, ChipMap
from worker.watermark.detect import Detector, Finding, Speeds
from worker.watermark.heard import listen
from worker.watermark.highband import read_high
from worker.watermark.inband import InBandMarker
from worker.watermark.keys import Keyring, MarkKey
from worker.watermark.marker import Marker
from worker.watermark.search import best_places
from worker.watermark.trace import Trace, trace_of

MARGIN_S = 3.0  # of the file on both sides of an excerpt that is cut after encoding
_RATES_HZ = (24_000, 44_100)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a trial draws: an excerpt of a voice with its surroundings, a key and a trace."""

    draw: random.Random
    voice: str
    around: Samples  # at RATE_HZ
    lead_s: float  # where in `around` the excerpt begins
    length_s: float
    key: MarkKey
    trace: Trace

    @property
    def noise(self) -> np.random.Generator:
        """For attacks that need chance."""
        return np.random.default_rng(self.draw.getrandbits(64))


def drawn(speech: Mapping[str, Samples], cell: str, number: int, length_s: float) -> Drawn:
    """Everything random about a trial."""
    draw = random.Random(f"{cell} {number}")
    voice = sorted(speech)[number % len(speech)]
    samples = speech[voice]
    start, end = next(crops(samples, RATE_HZ, length_s, draw))
    first = max(0, start - round(MARGIN_S * RATE_HZ))
    around = samples[first : end + round(MARGIN_S * RATE_HZ)]
    key = MarkKey(1, hashlib.sha256(f"{cell} {number}".encode()).digest())
    trace = trace_of(key, f"job {number}", "audio.mp3")
    return Drawn(draw, voice, around, (start - first) / RATE_HZ, length_s, key, trace)


def id_trial(speech: Mapping[str, Samples], cell: Cell, number: int) -> Record:
    """Mark, attack, cut (in either order), detect."""
    it = drawn(speech, cell.name, number, cell.length_s)
    rate_hz = _RATES_HZ[number // 2 % 2]
    marked = mark(resampled(it.around, RATE_HZ, rate_hz), rate_hz, it.key, it.trace)
    if number % 2:
        heard, heard_hz = ATTACKS[cell.attack](marked, rate_hz, it.noise)
        cut = cut_at(heard, heard_hz, it.lead_s, it.length_s, len(marked) / rate_hz)
    else:
        excerpt = cut_at(marked, rate_hz, it.lead_s, it.length_s, len(marked) / rate_hz)
        cut, heard_hz = ATTACKS[cell.attack](excerpt, rate_hz, it.noise)
    began_s = time.process_time()
    found = Detector(Keyring((it.key,))).excerpt(cut, heard_hz, speeds=cell.speeds)
    return judged(found, it.trace, it.voice) | {"cpu_s": round(time.process_time() - began_s, 3)}


def high_trial(speech: Mapping[str, Samples], attack: str, number: int) -> Record:
    """Three seconds of the mark above 18 kHz."""
    it = drawn(speech, f"high {attack}", number, HIGH_LENGTH_S)
    rate_hz = (44_100, 48_000)[number % 2]
    marked = mark(resampled(it.around, RATE_HZ, rate_hz), rate_hz, it.key, it.trace)
    excerpt = cut_at(marked, rate_hz, it.lead_s, it.length_s, len(marked) / rate_hz)
    heard, heard_hz = ATTACKS[attack](excerpt, rate_hz, it.noise)
    found = read_high((it.key,), heard, heard_hz)
    return {
        "voice": it.voice,
        "ok": found.trace_id == it.trace.trace_id,
        "wrong": found.trace_id not in {None, it.trace.trace_id},
        "present": found.present,
        "z": round(found.z, 2),
    }


def wrong_key_trial(speech: Mapping[str, Samples], number: int) -> Record:
    """A marked excerpt and a ring of keys that are not its own."""
    it = drawn(speech, "wrong key", number, 15.0)
    marked = mark(it.around, RATE_HZ, it.key, it.trace)
    cut = cut_at(marked, RATE_HZ, it.lead_s, it.length_s, len(marked) / RATE_HZ)
    keys = tuple(MarkKey(n, it.draw.randbytes(32)) for n in range(1, KEYS_A_TRIAL + 1))
    found = Detector(Keyring(keys)).excerpt(cut, RATE_HZ)
    return {"present": found.present, "pairs": KEYS_A_TRIAL, "z": round(found.z, 2)}


def unmarked_trial(speech: Mapping[str, Samples], number: int) -> Record:
    """Speech without a mark under a fresh key; `place_z` is the best of one alignment's places."""
    it = drawn(speech, "unmarked", number, UNMARKED_LENGTH_S)
    cut = cut_at(it.around, RATE_HZ, it.lead_s, it.length_s, len(it.around) / RATE_HZ)
    wide = number % UNMARKED_WIDE_EVERY == 0
    speeds = Speeds.WIDE if wide else Speeds.MARKED
    found = Detector(Keyring((it.key,))).excerpt(cut, RATE_HZ, speeds=speeds)
    best = best_places(ChipMap(it.key), [listen(cut, RATE_HZ).tiles()])[0].z
    return {
        "present": found.present,
        "id": found.trace_id is not None,
        "wide": wide,
        "z": round(found.z, 3),
        "threshold": round(found.threshold, 3),
        "place_z": round(best, 4),
    }


def copies_trial(speech: Mapping[str, Samples], number: int) -> Record:
    """Two marked copies of one recording, averaged or pieced together from one another."""
    it = drawn(speech, "two copies", number, 30.0)
    traces = [trace_of(it.key, f"job {number}", name) for name in ("a.mp3", "b.mp3")]
    one, two = (mark(it.around, RATE_HZ, it.key, trace) for trace in traces)
    if number % 2:
        joined = (one + two) / 2
    else:
        turn = np.arange(len(one)) // round(0.05 * RATE_HZ) % 2 == 0
        joined = np.where(turn, one, two)
    cut = cut_at(joined, RATE_HZ, it.lead_s, it.length_s, len(joined) / RATE_HZ)
    found = Detector(Keyring((it.key,))).excerpt(cut, RATE_HZ)
    known = {trace.trace_id for trace in traces}
    return {
        "how": "averaged" if number % 2 else "pieced",
        "ok": found.trace_id in known,
        "wrong": found.trace_id is not None and found.trace_id not in known,
        "present": found.present,
        "z": round(found.z, 2),
    }


def averaging_trial(speech: Mapping[str, Samples], number: int) -> Record:
    """Who has ten hours under one key, and knows all but the key, averages what repeats.

    The map is 5.2 hours long, so a tile of it occurs twice in ten hours, and this attacker is given
    two occurrences besides the excerpt itself. From their mean he guesses each sign, and undoes it.
    """
    it = drawn(speech, "averaging", number, 30.0)
    marked = mark(it.around, RATE_HZ, it.key, it.trace)
    names = [name for name in sorted(speech) if name != it.voice]
    seen = []
    for name in it.draw.sample(names, 2):
        start, _ = next(crops(speech[name], RATE_HZ, len(marked) / RATE_HZ, it.draw))
        other = speech[name][start : start + len(marked)]
        seen.append(listen(mark(other, RATE_HZ, it.key, it.trace), RATE_HZ).tiles())
    rows = min(map(len, seen))
    guessed = np.sum([tiles[:rows] / tiles.std() for tiles in seen], axis=0)
    undone = InBandMarker(RATE_HZ, _Undoing(guessed), np.zeros(0, np.uint8), 0)
    attacked = np.concatenate([undone.write(marked), undone.finish()])
    cut = cut_at(attacked, RATE_HZ, it.lead_s, it.length_s, len(attacked) / RATE_HZ)
    found = Detector(Keyring((it.key,))).excerpt(cut, RATE_HZ)
    return judged(found, it.trace, it.voice)


class _Undoing(ChipMap):
    """A map that makes louder what seems softened and the other way round, as far as it is sure."""

    def __init__(self, guessed: np.ndarray) -> None:
        self._opposite = -np.tanh(0.5 * guessed)  # the expected sign, were each tile 6 dB below

    def signs(self, number: int, coded: np.ndarray) -> np.ndarray:
        """See `ChipMap`; beyond what was seen nothing is changed."""
        del coded
        piece = self._opposite[number * ROWS : (number + 1) * ROWS]
        return np.pad(piece, ((0, ROWS - len(piece)), (0, 0))).astype(np.float32)


def mark(samples: Samples, rate_hz: int, key: MarkKey, trace: Trace) -> Samples:
    """A whole file, marked as assembly would."""
    marker = Marker(key, trace, rate_hz)
    return np.concatenate([marker.write(samples), marker.finish()])


def cut_at(
    samples: Samples, rate_hz: float, lead_s: float, length_s: float, whole_s: float
) -> Samples:
    """The excerpt, wherever a change of speed moved it: `whole_s` is the length before."""
    factor = len(samples) / (whole_s * rate_hz)
    factor = factor if abs(factor - 1) > 0.01 else 1.0  # a codec's padding is no change of speed
    start = round(lead_s * factor * rate_hz)
    return samples[start : start + round(length_s * rate_hz)]


def judged(found: Finding, trace: Trace, voice: str) -> Record:
    """Whether the right id was found, and whether a wrong one was."""
    return {
        "voice": voice,
        "ok": found.trace_id == trace.trace_id,
        "wrong": found.trace_id not in {None, trace.trace_id},
        "present": found.present,
        "z": round(found.z, 2),
    }


def key_hours(records: Sequence[Record]) -> float:
    """Hours of unmarked speech, each under a key of its own."""
    return len(records) * UNMARKED_LENGTH_S / 3_600


PLACES = PERIOD_ROWS
