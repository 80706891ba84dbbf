"""How a recording lies on the chip map, and how a rough place is made exact. Knows no payload."""

from dataclasses import dataclass, replace

from worker.watermark.chips import PERIOD_ROWS, ChipMap
from worker.watermark.grid import ROW_S
from worker.watermark.heard import FINE_HOP_S, Heard
from worker.watermark.search import pilot_score

_STRETCH_STEP = 0.0004
_NEIGHBOURS = (-2, -1, 1, 2)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Row `row` of the map begins `shift_s` into the recording once its speed is undone.

    `stretch` is how much longer than marked a row lasts then; `z` the pilots' score.
    """

    row: int
    shift_s: float
    stretch: float
    z: float

    def row_at(self, time_s: float) -> float:
        """The map's row at a time of the recording, speed undone, modulo the map."""
        return (self.row + (time_s - self.shift_s) / (ROW_S * self.stretch)) % PERIOD_ROWS


def refined(chips: ChipMap, heard: Heard, rough: Alignment, *, rounds: int = 2) -> Alignment:
    """The best alignment near a rough one: shifts by 2 ms and stretches by 0.04 % in turn."""
    best = _scored(chips, heard, rough)
    middle_s = heard.length_s / 2
    for _ in range(rounds):
        before = best
        for steps in _NEIGHBOURS:
            shifted = replace(before, shift_s=before.shift_s + steps * FINE_HOP_S)
            best = max(best, _scored(chips, heard, shifted), key=lambda one: one.z)
        before = best
        for steps in _NEIGHBOURS:
            pivoted = turned(before, before.stretch + steps * _STRETCH_STEP, middle_s)
            best = max(best, _scored(chips, heard, pivoted), key=lambda one: one.z)
    return best


def turned(at: Alignment, stretch: float, about_s: float) -> Alignment:
    """The alignment with another stretch that agrees with this one at `about_s`."""
    shift_s = about_s - (about_s - at.shift_s) * stretch / at.stretch
    return replace(at, shift_s=shift_s, stretch=stretch)


def earlier(at: Alignment, lead_s: float) -> Alignment:
    """The same alignment of a recording that begins `lead_s` earlier."""
    rows, shift_s = divmod(at.shift_s + lead_s, ROW_S * at.stretch)
    return replace(at, row=(at.row - int(rows)) % PERIOD_ROWS, shift_s=shift_s)


def _scored(chips: ChipMap, heard: Heard, at: Alignment) -> Alignment:
    whole = earlier(at, 0.0)  # begins with the first whole row of the recording
    z = pilot_score(chips, heard.tiles(whole.shift_s, whole.stretch), whole.row)
    return replace(whole, z=z)
