"""The payload's code and the chip map: what they correct, and that they never change."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.watermark.chips import (
    BANDS,
    BLOCKS,
    CODED_BITS,
    DATA_BANDS,
    PILOT_BANDS,
    ROWS,
    ChipMap,
)
from worker.watermark.convolution import coded_length, decode, encode
from worker.watermark.keys import MarkKey
from worker.watermark.trace import PAYLOAD_BITS

KEY = MarkKey(1, bytes(range(32)))


def bits_of(number: int, length: int = 96) -> np.ndarray:
    return np.array([number >> n & 1 for n in range(length)], np.uint8)


def soft(coded: np.ndarray) -> np.ndarray:
    return (1.0 - 2.0 * coded).astype(np.float32)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**96 - 1), st.sets(st.integers(0, CODED_BITS - 1), max_size=11))
def test_any_eleven_wrong_bits_are_corrected(number: int, wrong: set[int]) -> None:
    """Free distance 24: fewer than half of it cannot lead to another message."""
    bits = bits_of(number)
    llrs = soft(encode(bits))
    llrs[list(wrong)] *= -1
    assert np.array_equal(decode(llrs)[0], bits)


def test_the_list_holds_different_messages_best_first() -> None:
    rng = np.random.default_rng(1)
    bits = bits_of(0xF00D)
    llrs = (0.5 * soft(encode(bits)) + rng.standard_normal(CODED_BITS)).astype(np.float32)
    messages = decode(llrs, 16)
    assert len({message.tobytes() for message in messages}) == 16
    scores = [float(soft(encode(message)) @ llrs) for message in messages]
    assert scores == sorted(scores, reverse=True)
    assert np.array_equal(messages[0], decode(llrs, 1)[0])


def test_a_list_reads_what_one_path_does_not() -> None:
    rng = np.random.default_rng(2)
    bits = bits_of(0xBEEF << 40)
    alone = together = 0
    for _ in range(24):
        llrs = (0.52 * soft(encode(bits)) + rng.standard_normal(CODED_BITS)).astype(np.float32)
        messages = decode(llrs, 16)
        alone += np.array_equal(messages[0], bits)
        together += any(np.array_equal(message, bits) for message in messages)
    assert alone < together


@pytest.mark.parametrize("value", [0.0, np.inf])
def test_no_evidence_and_endless_evidence_decode_to_something(value: float) -> None:
    llrs = np.full(CODED_BITS, value, np.float32)
    llrs[1::2] *= 1.0
    assert len(decode(np.nan_to_num(llrs), 4)[0]) == PAYLOAD_BITS


def test_the_lengths_fit() -> None:
    assert coded_length(PAYLOAD_BITS) == CODED_BITS == len(encode(bits_of(3)))


def test_the_map_is_for_ever() -> None:
    """Marks made today must be found in ten years: a change here needs a new version beside it."""
    chips = ChipMap(KEY)
    digest = hashlib.sha256(chips.pilot_bands.astype("<i8").tobytes())
    for number in (0, 1, BLOCKS - 1):
        block = chips.block(number)
        digest.update(block.pilot.tobytes() + block.data.tobytes())
        digest.update(block.coded_bit.astype("<u2").tobytes())
    assert digest.hexdigest() == (
        "464248f7f9cebc1bc83eb5c79836a5c9376448fd2fcc64f4c2eb0e28aeae6afa"
    )


def test_every_tile_has_its_place() -> None:
    chips = ChipMap(KEY)
    assert len(chips.pilot_bands) == PILOT_BANDS
    assert sorted([*chips.pilot_bands, *chips.data_bands]) == list(range(BANDS))
    counts = np.bincount(chips.block(5).coded_bit.ravel(), minlength=CODED_BITS)
    assert counts.min() >= ROWS * DATA_BANDS // CODED_BITS
    two = counts + np.bincount(chips.block(6).coded_bit.ravel(), minlength=CODED_BITS)
    assert two.max() - two.min() <= 1


def test_blocks_and_keys_are_strangers_to_one_another() -> None:
    one, other = ChipMap(KEY), ChipMap(MarkKey(1, bytes(range(1, 33))))
    coded = encode(bits_of(77))
    tiles = [
        one.signs(0, coded),
        one.signs(1, coded),
        one.signs(2_048, coded),
        other.signs(0, coded),
    ]
    assert np.array_equal(one.signs(BLOCKS, coded), tiles[0])
    for n, first in enumerate(tiles):
        for second in tiles[n + 1 :]:
            correlation = float(np.mean(first.astype(float) * second))
            assert abs(correlation) < 5 / np.sqrt(first.size)


def test_pilots_run_on_over_the_end_of_the_map() -> None:
    chips = ChipMap(KEY)
    around = chips.pilots(BLOCKS - 1, 2)
    assert np.array_equal(around[ROWS:], chips.block(0).pilot)
