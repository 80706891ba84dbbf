"""What aligned tiles say of the payload: soft coded bits, summed over all repeats. Pure.

Bands that carry their pilots well count for more. Knows no search and no tag.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from worker.watermark.chips import BANDS, CODED_BITS, PERIOD_ROWS, ROWS, ChipMap
from worker.watermark.heard import Tiles

_LEAST_RELIABILITY = 0.1  # of the mean: a band is never silenced by a few unlucky pilots
_PRIOR_PILOTS = 400.0  # pilots' worth of belief that all bands are alike


@dataclass(slots=True)
class Evidence:
    """Log-likelihood ratios of the coded bits (up to a common factor; positive: 0)."""

    llrs: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(CODED_BITS))
    rows: int = 0

    def add(self, chips: ChipMap, tiles: Tiles, row: int) -> None:
        """Add tiles whose first row is `row` of the map."""
        if not len(tiles):
            return
        weights = _reliabilities(chips, tiles, row)[chips.data_bands]
        for number, place, piece in _by_block(tiles, row):
            block = chips.block(number)
            signs = block.data[place : place + len(piece)]
            votes = piece[:, chips.data_bands] * signs * weights
            bits = block.coded_bit[place : place + len(piece)]
            self.llrs += np.bincount(bits.ravel(), votes.ravel(), minlength=CODED_BITS)
        self.rows += len(tiles)

    def plus(self, other: Self) -> Self:
        """Both together."""
        return type(self)(self.llrs + other.llrs, self.rows + other.rows)


def known_score(
    chips: ChipMap, coded: npt.NDArray[np.uint8], tiles: Tiles, row: int
) -> tuple[float, float]:
    """Sum of all tiles under the signs of a known payload, and the sum of their squares."""
    total = energy = 0.0
    for number, place, piece in _by_block(tiles, row):
        signs = chips.signs(number, coded)[place : place + len(piece)]
        total += float(np.sum(piece * signs, dtype=np.float64))
        energy += float(np.sum(piece.astype(np.float64) ** 2))
    return total, energy


def _reliabilities(chips: ChipMap, tiles: Tiles, row: int) -> npt.NDArray[np.float64]:
    """Weight of each band, shape (BANDS,): mean over variance of its pilots, drawn to the mean."""
    products = np.zeros(len(chips.pilot_bands))
    squares = np.zeros(len(chips.pilot_bands))
    for number, place, piece in _by_block(tiles, row):
        pilots = piece[:, chips.pilot_bands].astype(np.float64)
        products += (pilots * chips.block(number).pilot[place : place + len(piece)]).sum(axis=0)
        squares += (pilots**2).sum(axis=0)
    common = max(products.sum(), 0.0) / max(squares.sum(), 1e-30)
    if common <= 0.0:
        return np.ones(BANDS)
    belief = _PRIOR_PILOTS * squares / len(tiles)
    own = (products + common * belief) / np.maximum(squares + belief, 1e-30)
    own = np.maximum(own / common, _LEAST_RELIABILITY)
    weights: npt.NDArray[np.float64] = np.interp(np.arange(BANDS), chips.pilot_bands, own)
    return weights


def _by_block(tiles: Tiles, row: int) -> list[tuple[int, int, Tiles]]:
    """Pieces that lie in one block each: its number, the first row in it, the tiles."""
    pieces, done = list[tuple[int, int, Tiles]](), 0
    while done < len(tiles):
        number, place = divmod((row + done) % PERIOD_ROWS, ROWS)
        length = min(ROWS - place, len(tiles) - done)
        pieces.append((number, place, tiles[done : done + length]))
        done += length
    return pieces
