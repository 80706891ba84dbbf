"""Finding a mark in an excerpt: present or not, whose, how far into its file, how fast. Pure.

Every score is held against a threshold that comes from how many places, alignments and keys were
tried, so that a recording without a mark passes with a probability below `FALSE_RATE`. There are
two ways to pass: pilots that score above the threshold; or pilots that score above a lower one,
and a payload whose 32-bit tag is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from shared.errors import UsageError
from worker.engines.base import Samples
from worker.watermark.alignment import Alignment, earlier, refined
from worker.watermark.chips import PERIOD_ROWS, ROWS, ChipMap
from worker.watermark.convolution import decode
from worker.watermark.evidence import Evidence
from worker.watermark.grid import ROW_S
from worker.watermark.heard import FINE_HOP_S, Heard, check_rate, listen
from worker.watermark.keys import Keyring, MarkKey
from worker.watermark.search import LONGEST_ROWS, QUICK_ROWS, best_places, threshold
from worker.watermark.trace import trace_id_in, trace_with

FALSE_RATE = 1e-8  # of one excerpt, all in all
LONGEST_S = LONGEST_ROWS * ROW_S * 0.9
SHORTEST_S = 1.0  # below, no score can pass
PATHS = 16  # of the list decoder
_CANDIDATES = 3
_NEAR_ROWS = 3
_PHASES_S = tuple(2 * step * FINE_HOP_S for step in range(4))  # starts of a row that are tried
_WIDE_PHASES_S = _PHASES_S[::2]
_REFINEMENTS = 64  # alignments tried around each place, at most
_STRETCH_STEP = 0.0017
_SPEEDS = tuple(1 + 0.005 * step for step in range(-12, 13))
_AROUND = (1 - _STRETCH_STEP, 1.0, 1 + _STRETCH_STEP)
_TEMPOS = tuple(1 + _STRETCH_STEP * step for step in range(-36, 37))
_WIDE = tuple((speed, _TEMPOS if speed == 1.0 else _AROUND) for speed in _SPEEDS)
_WIDE_ALIGNMENTS = len(_WIDE_PHASES_S) * sum(len(stretches) for _, stretches in _WIDE)
_TAG_PASSES = _CANDIDATES * PATHS / 2**32  # by chance, of one excerpt's candidates


class Speeds(StrEnum):
    """What is searched: the marked speed only, or also ±6 % of speed and of tempo alone."""

    MARKED = "marked"
    WIDE = "wide"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found in a recording.

    `z` is the best score of the pilots. A recording without a mark passes `threshold` in less than
    one of 1 / `FALSE_RATE`; where an id with the right tag was read, less than that is enough.
    `trace_id` is None where the mark is there but not readable. `offset_s` says where in its file
    (modulo 5 h 14 min) the excerpt begins; `speed` is how much faster it is played than it was
    made, pitch and all, and `tempo` how much faster on top of that at the same pitch.
    """

    present: bool
    z: float
    threshold: float
    epoch: int | None = None
    trace_id: str | None = None
    offset_s: float | None = None
    speed: float = 1.0
    tempo: float = 1.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where the mark of a key may lie, in a recording heard at some speed."""

    key: MarkKey
    chips: ChipMap
    heard: Heard
    speed: float
    at: Alignment


@dataclass(frozen=True, slots=True)
class Located:
    """A finding and, where a mark is present, its place."""

    finding: Finding
    candidate: Candidate | None


@dataclass(slots=True)
class Detector:
    """Finds the marks of all keys of a ring. Keeps the keys' chip maps; safe in one thread."""

    keyring: Keyring
    _maps: dict[int, ChipMap] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._maps = {key.epoch: ChipMap(key) for key in self.keyring.keys}

    def excerpt(
        self,
        samples: Samples,
        rate_hz: float,
        *,
        speeds: Speeds = Speeds.MARKED,
        false_rate: float = FALSE_RATE,
    ) -> Finding:
        """Look for a mark in float32 mono samples of at most `LONGEST_S` seconds.

        UsageError: longer, not one channel, or at a rate that no recording has.
        """
        check_rate(rate_hz)
        if samples.ndim != 1:
            raise UsageError("a watermark is looked for in one channel", code="bad-audio")
        if len(samples) > LONGEST_S * rate_hz:
            raise UsageError(f"an excerpt lasts at most {LONGEST_S:.0f} s", code="too-long")
        return self.located(samples, rate_hz, speeds=speeds, false_rate=false_rate).finding

    def located(
        self,
        samples: Samples,
        rate_hz: float,
        *,
        speeds: Speeds = Speeds.MARKED,
        false_rate: float = FALSE_RATE,
        speed: float = 1.0,
    ) -> Located:
        """As `excerpt`, with the place that was found; `speed` is the one to try first."""
        share = false_rate / (2 if speeds is Speeds.WIDE else 1)
        found = self._judged(self.at_speed(samples, rate_hz, speed), len(_PHASES_S), share)
        if speeds is Speeds.WIDE and found.finding.trace_id is None:
            wide = self._judged(self._wide(samples, rate_hz), _WIDE_ALIGNMENTS, share)
            found = max(found, wide, key=_worth)
        return found

    def at_speed(self, samples: Samples, rate_hz: float, speed: float) -> list[Candidate]:
        """The likeliest places of every key at one speed, refined, best first."""
        heard = listen(samples, rate_hz, speed=speed)
        if heard.length_s < SHORTEST_S:
            return []
        places = self._places(heard, [(shift_s, 1.0) for shift_s in _PHASES_S], LONGEST_ROWS)
        found = [
            Candidate(key, self._maps[key.epoch], heard, speed, at)
            for key, at in _apart(places)[:_CANDIDATES]
        ]
        return _refined(found)

    def _wide(self, samples: Samples, rate_hz: float) -> list[Candidate]:
        """The likeliest places at all speeds and tempos: found in the busiest seconds."""
        start, excerpt = busiest(samples, rate_hz, QUICK_ROWS * ROW_S)
        places = list[tuple[float, MarkKey, Alignment]]()
        for speed, stretches in _WIDE:
            heard = listen(excerpt, rate_hz, speed=speed)
            if heard.length_s >= SHORTEST_S:
                tries = [(at, by) for by in stretches for at in _WIDE_PHASES_S]
                found = _apart(self._places(heard, tries, QUICK_ROWS))[:_CANDIDATES]
                places += [(speed, key, at) for key, at in found]
        best = sorted(places, key=lambda place: -place[2].z)[:_CANDIDATES]
        return _refined(
            [
                Candidate(
                    key,
                    self._maps[key.epoch],
                    listen(samples, rate_hz, speed=speed),
                    speed,
                    earlier(at, start / rate_hz * speed),
                )
                for speed, key, at in best
            ]
        )

    def _places(
        self, heard: Heard, tries: Sequence[tuple[float, float]], longest_rows: int
    ) -> list[tuple[MarkKey, Alignment]]:
        """The best row of the map for every key and every (shift, stretch)."""
        queries = [heard.tiles(*one)[:longest_rows] for one in tries]
        return [
            (key, Alignment(place.row, *tries[place.query], place.z))
            for key in self.keyring.keys
            for place in best_places(self._maps[key.epoch], queries)
        ]

    def _judged(
        self, candidates: Sequence[Candidate], alignments: int, false_rate: float
    ) -> Located:
        """Judge candidates that are the best of so many alignments at every row of the map."""
        places = alignments * _REFINEMENTS * PERIOD_ROWS * len(self.keyring.keys)
        alone = threshold(places, false_rate / 2)
        with_tag = threshold(places, min(1.0, false_rate / 2 / _TAG_PASSES))
        for candidate in candidates[:_CANDIDATES]:
            if candidate.at.z >= with_tag and (trace_id := read(candidate)):
                return Located(_finding(candidate, alone, trace_id), candidate)
        if candidates and candidates[0].at.z >= alone:
            return Located(_finding(candidates[0], alone, None), candidates[0])
        z = candidates[0].at.z if candidates else 0.0
        return Located(Finding(present=False, z=z, threshold=alone), None)


def read(candidate: Candidate) -> str | None:
    """The trace id at a candidate's place; None where no tag is right."""
    evidence = Evidence()
    at = candidate.at
    evidence.add(candidate.chips, candidate.heard.tiles(at.shift_s, at.stretch), at.row)
    return read_evidence(candidate.key, evidence)


def read_evidence(key: MarkKey, evidence: Evidence) -> str | None:
    """The trace id that the evidence speaks for; None where no tag is right."""
    for bits in decode(evidence.llrs.astype(np.float32), PATHS):
        trace_id = trace_id_in(key, bits)
        if trace_id is not None:
            return trace_id
    return None


def offset_s(key: MarkKey, trace_id: str, row: float) -> float:
    """Seconds into its file at a row of the map."""
    start = trace_with(key, trace_id).start_block * ROWS
    return (row - start) % PERIOD_ROWS * ROW_S


def busiest(samples: Samples, rate_hz: float, length_s: float) -> tuple[int, Samples]:
    """The stretch of `length_s` seconds with most of its tenths loud, and its first sample."""
    tenth = max(1, round(rate_hz / 10))
    wanted = int(length_s * 10)
    if len(samples) <= wanted * tenth:
        return 0, samples
    whole = np.nan_to_num(samples[: len(samples) // tenth * tenth], posinf=0.0, neginf=0.0)
    power = (whole.reshape(-1, tenth).astype(np.float64) ** 2).mean(axis=1)
    loud = np.concatenate([[0], np.cumsum(power > power.max() * 1e-3)])
    first = int(np.argmax(loud[wanted:] - loud[:-wanted])) * tenth
    return first, samples[first : first + wanted * tenth]


def _apart(places: Sequence[tuple[MarkKey, Alignment]]) -> list[tuple[MarkKey, Alignment]]:
    """Places that are not the neighbours of better ones, best first."""
    kept = list[tuple[MarkKey, Alignment]]()
    for key, at in sorted(places, key=lambda place: -place[1].z):
        if all(key != other or abs(at.row - near.row) > _NEAR_ROWS for other, near in kept):
            kept.append((key, at))
    return kept


def _refined(candidates: Sequence[Candidate]) -> list[Candidate]:
    made = [replace(one, at=refined(one.chips, one.heard, one.at)) for one in candidates]
    return sorted(made, key=lambda one: -one.at.z)


def _worth(located: Located) -> tuple[bool, bool, float]:
    finding = located.finding
    return finding.trace_id is not None, finding.present, finding.z - finding.threshold


def _finding(candidate: Candidate, limit: float, trace_id: str | None) -> Finding:
    at = candidate.at
    offset = None if trace_id is None else offset_s(candidate.key, trace_id, at.row_at(0.0))
    return Finding(
        present=True,
        z=at.z,
        threshold=limit,
        epoch=candidate.key.epoch,
        trace_id=trace_id,
        offset_s=offset,
        speed=candidate.speed,
        tempo=1 / at.stretch,
    )
