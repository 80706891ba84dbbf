"""The chip map: what a key says of every tile of time and frequency. Knows no audio, no payload.

The map is 4,096 blocks long (5 h 14 min) and begins anew then; a file starts at a block of its
own. A block has 288 rows of 16 ms and 54 bands of 125 Hz. In every group of about four bands one,
chosen by the key, carries pilot chips, the same whatever the payload; the others carry data tiles,
each of which repeats one coded bit under a sign of its own. SHAKE-256 makes it all, so that the
map is the same on every machine and for ever.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from worker.watermark.convolution import coded_length
from worker.watermark.keys import MarkKey

Signs = npt.NDArray[np.int8]

BANDS = 54
PILOT_BANDS = 13
DATA_BANDS = BANDS - PILOT_BANDS
ROWS = 288  # of one block
BLOCKS = 4_096
PERIOD_ROWS = ROWS * BLOCKS
CODED_BITS = coded_length(96)
_KEPT_BLOCKS = 16  # more than an excerpt of a minute touches


@dataclass(frozen=True, slots=True)
class Block:
    """Signs of one block's tiles, and which coded bit each data tile repeats.

    `pilot` has shape (ROWS, PILOT_BANDS); `data` and `coded_bit` (ROWS, DATA_BANDS).
    """

    pilot: Signs
    data: Signs
    coded_bit: npt.NDArray[np.uint16]


class ChipMap:
    """One key's map. Blocks are made when asked for; the last few are kept."""

    def __init__(self, key: MarkKey) -> None:
        self._seed = key.derived("chips")
        self.pilot_bands = _pilot_bands(self._seed)
        self.data_bands = np.setdiff1d(np.arange(BANDS), self.pilot_bands)
        self._kept = OrderedDict[int, Block]()

    def block(self, number: int) -> Block:
        """Block `number`, counted modulo `BLOCKS`."""
        number %= BLOCKS
        if number not in self._kept:
            self._kept[number] = self._made(number)
            if len(self._kept) > _KEPT_BLOCKS:
                self._kept.popitem(last=False)
        return self._kept[number]

    def pilots(self, first_block: int, blocks: int) -> Signs:
        """Pilot signs of several blocks in a row, shape (blocks * ROWS, PILOT_BANDS)."""
        return np.concatenate(
            [self._pilot((first_block + number) % BLOCKS) for number in range(blocks)]
        )

    def signs(self, number: int, coded: npt.NDArray[np.uint8]) -> Signs:
        """Signs of all tiles of a block that carries these coded bits, shape (ROWS, BANDS)."""
        block = self.block(number)
        tiles = np.empty((ROWS, BANDS), np.int8)
        tiles[:, self.pilot_bands] = block.pilot
        tiles[:, self.data_bands] = block.data * (1 - 2 * coded.astype(np.int8))[block.coded_bit]
        return tiles

    def _made(self, number: int) -> Block:
        tiles = ROWS * DATA_BANDS
        order = np.frombuffer(self._stream("order", number, 4 * tiles), ">u4").argsort(
            kind="stable"
        )
        coded_bit = np.empty(tiles, np.uint16)
        # Each coded bit has 28 tiles, some 29: the surplus goes to others in the next block.
        coded_bit[order] = (np.arange(tiles) + number * (tiles % CODED_BITS)) % CODED_BITS
        return Block(
            pilot=self._pilot(number),
            data=self._signs("data", number, tiles).reshape(ROWS, DATA_BANDS),
            coded_bit=coded_bit.reshape(ROWS, DATA_BANDS),
        )

    def _pilot(self, number: int) -> Signs:
        return self._signs("pilot", number, ROWS * PILOT_BANDS).reshape(ROWS, PILOT_BANDS)

    def _signs(self, use: str, number: int, count: int) -> Signs:
        packed = np.frombuffer(self._stream(use, number, count // 8), np.uint8)
        return 1 - 2 * np.unpackbits(packed).astype(np.int8)

    def _stream(self, use: str, number: int, length: int) -> bytes:
        return hashlib.shake_256(self._seed + f"{use} {number}".encode()).digest(length)


def _pilot_bands(seed: bytes) -> npt.NDArray[np.intp]:
    """One band of each of `PILOT_BANDS` groups of neighbours, rising."""
    draws = hashlib.shake_256(seed + b"bands").digest(2 * PILOT_BANDS)
    groups = np.array_split(np.arange(BANDS), PILOT_BANDS)
    chosen = [
        group[int.from_bytes(draws[2 * n : 2 * n + 2], "big") % len(group)]
        for n, group in enumerate(groups)
    ]
    return np.array(chosen, np.intp)
