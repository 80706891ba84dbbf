"""Where in the chip map a recording lies: pilots correlated at every row of the map. Pure.

The score of a place is the sum of the tiles under the pilot's signs there, over the root of the sum
of their squares. For a sound that knows nothing of the key the signs are fair coins, so that by
Hoeffding's inequality the score passes z at one place with a probability of at most exp(-z²/2),
whatever the sound.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.fft

from worker.watermark.chips import BLOCKS, PERIOD_ROWS, ROWS, ChipMap
from worker.watermark.heard import Tiles

# Length of the transforms and of the step between them, in rows: a query may be as long as the
# difference. Steps divide the map.
_TRANSFORMS = ((4_096, 3_072), (8_192, 4_608), (16_384, 9_216))
_SEGMENTS_AT_ONCE = 24
_PRODUCTS_AT_ONCE = 1_200  # segments times queries: bounds memory to some 100 MB
LONGEST_ROWS = _TRANSFORMS[-1][0] - _TRANSFORMS[-1][1]  # 115 s
QUICK_ROWS = _TRANSFORMS[0][0] - _TRANSFORMS[0][1]  # 16.4 s


@dataclass(frozen=True, slots=True)
class Place:
    """A query's score at a row of the map."""

    query: int
    row: int
    z: float


def threshold(hypotheses: int, false_rate: float) -> float:
    """The score that a sound without this mark passes at any of so many places at that rate."""
    return math.sqrt(2 * math.log(max(1, hypotheses) / false_rate))


def best_places(chips: ChipMap, queries: list[Tiles]) -> list[Place]:
    """The best place of every query, best first.

    A query has the shape (rows, BANDS), rows at most `LONGEST_ROWS`.
    """
    found = dict[int, Place]()
    for first_row, scores in _scores(chips, queries):
        rows = scores.argmax(axis=1)
        for query, row in enumerate(rows):
            z = float(scores[query, row])
            if query not in found or z > found[query].z:
                found[query] = Place(query, first_row + int(row), z)
    return sorted(found.values(), key=lambda place: -place.z)


def _scores(chips: ChipMap, queries: list[Tiles]) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Scores of all queries at stretches of the map: (first row, (queries, rows))."""
    rows = max(len(query) for query in queries)
    length, step = next(pair for pair in _TRANSFORMS if pair[0] - pair[1] >= rows)
    spectra = _spectra(chips, queries, length)
    pilots = chips.pilots(0, BLOCKS)
    pilots = np.concatenate([pilots, pilots[:length]]).T.astype(np.float32)
    at_once = max(1, min(_SEGMENTS_AT_ONCE, _PRODUCTS_AT_ONCE // len(queries)))
    for first in range(0, PERIOD_ROWS, step * at_once):
        segments = min(at_once, (PERIOD_ROWS - first) // step)
        views = np.lib.stride_tricks.sliding_window_view(pilots[:, first:], length, axis=1)
        signal = scipy.fft.rfft(views[:, : segments * step : step], axis=2)
        product = np.matmul(np.ascontiguousarray(signal.transpose(2, 1, 0)), spectra)
        scores = scipy.fft.irfft(product.transpose(2, 1, 0), length, axis=2)[:, :, :step]
        yield first, scores.reshape(len(queries), segments * step)


def _spectra(chips: ChipMap, queries: list[Tiles], length: int) -> npt.NDArray[np.complex64]:
    """Conjugate spectra of the queries' pilot bands at unit energy: (bins, bands, queries)."""
    padded = np.zeros((len(chips.pilot_bands), len(queries), length), np.float32)
    for index, query in enumerate(queries):
        tiles = query[:, chips.pilot_bands]
        energy = float(np.sqrt(np.sum(tiles.astype(np.float64) ** 2)))
        if energy > 0:
            padded[:, index, : len(query)] = (tiles / energy).T
    made: npt.NDArray[np.complex64] = np.ascontiguousarray(
        np.conj(scipy.fft.rfft(padded, axis=2)).transpose(2, 0, 1)
    )
    return made


def pilot_score(chips: ChipMap, tiles: Tiles, row: int) -> float:
    """The score at one row of the map; 0 where there is nothing."""
    if not len(tiles):
        return 0.0
    block, skipped = divmod(row % PERIOD_ROWS, ROWS)
    blocks = (skipped + len(tiles) - 1) // ROWS + 1
    signs = chips.pilots(block, blocks)[skipped : skipped + len(tiles)]
    chosen = tiles[:, chips.pilot_bands].astype(np.float64)
    energy = math.sqrt(float(np.sum(chosen**2)))
    return float(np.sum(chosen * signs)) / energy if energy > 0 else 0.0
