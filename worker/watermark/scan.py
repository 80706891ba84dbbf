"""Marks in a recording of any length, in constant memory: stretch by stretch, with progress.

A mark that was found is followed from window to window, and what its windows say of the payload is
summed, also over stretches that are torn apart. Knows no file and no progress bar.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce

from worker.engines.base import Samples
from worker.watermark.alignment import Alignment, earlier, refined, turned
from worker.watermark.chips import PERIOD_ROWS
from worker.watermark.detect import (
    FALSE_RATE,
    Candidate,
    Detector,
    Finding,
    Located,
    Speeds,
    offset_s,
    read_evidence,
)
from worker.watermark.evidence import Evidence
from worker.watermark.grid import ROW_S
from worker.watermark.heard import Heard, check_rate, listen
from worker.watermark.search import threshold
from worker.watermark.windows import windows

WINDOW_S = 30.0
_FOLLOWED_TRIES = 64
_FOLLOWED_FALSE_RATE = 1e-4  # a window more in a mark that is there: harmless where wrong
_SAME_ROWS = 8  # 0.13 s: so far a window's place may lie from where a mark would go on
_PATIENCE = 10  # windows without the mark (a pause, music, another voice) before it is given up

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A mark from `start_s` to `end_s` of the recording. `offset_s` in it is that of its start."""

    start_s: float
    end_s: float
    finding: Finding


class _Track:
    """A mark being followed: where it was last, and what it has said so far."""

    def __init__(self, candidate: Candidate, finding: Finding, start_s: float) -> None:
        self.key = candidate.key
        self.speed = candidate.speed
        self.evidence = Evidence()
        self._chips = candidate.chips
        self._finding = finding
        self._start_s = self._at_s = self._end_s = start_s
        self._start = candidate.at
        self._take(candidate.heard, candidate.at, start_s)

    def follow(self, heard: Heard, start_s: float) -> None:
        """Look for the mark where it must be in a window that begins at `start_s`."""
        # A weak window's stretch is uncertain: as marked is as good a guess as the last one.
        guesses = {self._at.stretch, 1.0}
        tried = [
            refined(self._chips, heard, self._expected(start_s, stretch), rounds=1)
            for stretch in sorted(guesses)
        ]
        at = max(tried, key=lambda one: one.z)
        if at.z >= threshold(_FOLLOWED_TRIES, _FOLLOWED_FALSE_RATE):
            self._take(heard, at, start_s)
        else:
            self.missed += 1

    def resumed(self, candidate: Candidate, start_s: float) -> bool:
        """Take a place that was found blindly, where it is this mark going on."""
        expected = self._expected(start_s, self._at.stretch)
        apart = (candidate.at.row - expected.row + PERIOD_ROWS // 2) % PERIOD_ROWS
        if candidate.key != self.key or abs(apart - PERIOD_ROWS // 2) > _SAME_ROWS:
            return False
        self._take(candidate.heard, candidate.at, start_s)
        return True

    def _expected(self, start_s: float, stretch: float) -> Alignment:
        at = turned(self._at, stretch, self._middle_s)
        return earlier(at, (self._at_s - start_s) * self.speed)

    def _take(self, heard: Heard, at: Alignment, start_s: float) -> None:
        self.evidence.add(self._chips, heard.tiles(at.shift_s, at.stretch), at.row)
        self.missed = 0
        self._at, self._at_s = at, start_s
        self._middle_s = heard.length_s / 2
        self._end_s = start_s + heard.length_s / self.speed

    def told(self, trace_id: str | None) -> Stretch:
        """What is to be told of this mark."""
        if trace_id is None:
            finding = replace(self._finding, trace_id=None, offset_s=None)
            return Stretch(self._start_s, self._end_s, finding)
        offset = offset_s(self.key, trace_id, self._start.row_at(0.0))
        start_s = self._start_s
        if offset > PERIOD_ROWS * ROW_S - WINDOW_S:  # the file begins inside the window
            start_s, offset = start_s + (PERIOD_ROWS * ROW_S - offset) / self.speed, 0.0
        finding = replace(self._finding, trace_id=trace_id, offset_s=offset)
        return Stretch(start_s, self._end_s, finding)


def scan(
    detector: Detector,
    blocks: Iterable[Samples],
    rate_hz: float,
    *,
    speeds: Speeds = Speeds.MARKED,
    progress: Progress = lambda _: None,
) -> list[Stretch]:
    """All marks in float32 mono blocks of any length; `progress` is told the seconds done.

    A recording without a mark passes anywhere with a probability below `FALSE_RATE`, however long
    it is. `Speeds.WIDE` costs seconds for windows in which nothing is found, so it is tried in ever
    fewer of them. UsageError: a rate that no recording has.
    """
    check_rate(rate_hz)
    tracks, done = list[_Track](), list[_Track]()
    for number, (start_s, window) in enumerate(windows(blocks, rate_hz, WINDOW_S)):
        tracks, ended = _followed(tracks, window, rate_hz, start_s)
        done += ended
        if not any(track.missed == 0 for track in tracks):
            found = _begun(
                detector, window, rate_hz, number=number, speeds=speeds, before=[*done, *tracks]
            )
            place = found.candidate
            if place is not None and not any(track.resumed(place, start_s) for track in tracks):
                tracks.append(_Track(place, found.finding, start_s))
        progress(start_s + len(window) / rate_hz)
    return _told(detector, done + tracks)


def _followed(
    tracks: list[_Track], window: Samples, rate_hz: float, start_s: float
) -> tuple[list[_Track], list[_Track]]:
    """Look for the marks that were there before where they must be now: (kept, given up)."""
    heard = {speed: listen(window, rate_hz, speed=speed) for speed in {t.speed for t in tracks}}
    for track in tracks:
        track.follow(heard[track.speed], start_s)
    gone = [track for track in tracks if track.missed > _PATIENCE]
    return [track for track in tracks if track.missed <= _PATIENCE], gone


def _begun(
    detector: Detector,
    window: Samples,
    rate_hz: float,
    *,
    number: int,
    speeds: Speeds,
    before: list[_Track],
) -> Located:
    """A mark that begins in the window of this number, searched blindly."""
    # Shares of the false rate that sum to the whole over however many windows.
    share = FALSE_RATE * 6 / (math.pi * (number + 1)) ** 2
    wide = speeds is Speeds.WIDE and (number & (number + 1)) == 0 and not before
    # What follows a mark was most likely recorded by the same player.
    speed = before[-1].speed if before else 1.0
    return detector.located(
        window,
        rate_hz,
        speeds=Speeds.WIDE if wide else Speeds.MARKED,
        false_rate=share,
        speed=speed,
    )


def _told(detector: Detector, tracks: list[_Track]) -> list[Stretch]:
    """What the marks say: each by itself, else all of a key that say nothing alone together."""
    ids = [read_evidence(track.key, track.evidence) for track in tracks]
    for key in detector.keyring.keys:
        dumb = [n for n, track in enumerate(tracks) if track.key == key and ids[n] is None]
        if len(dumb) > 1:
            together = reduce(Evidence.plus, (tracks[n].evidence for n in dumb))
            trace_id = read_evidence(key, together)
            for n in dumb:
                ids[n] = trace_id
    pairs = zip(tracks, ids, strict=True)
    return sorted((track.told(id_) for track, id_ in pairs), key=lambda one: one.start_s)
