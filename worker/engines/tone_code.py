"""Writes a 48-bit hash into a third of a second of tones, and reads such hashes back from audio.

Knows no engine and no utterance. The code is multiple frequency-shift keying: four sync symbols,
twelve data symbols and four check symbols of 16 ms, each one of 16 tones (4 bits) between 0.5 and
3.4 kHz, so that it survives resampling from 8 to 48 kHz, edge fades, trimming and MP3.
"""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import soxr

from worker.engines.base import Samples

HASH_BITS = 48
SYMBOL_S = 0.016
SILENCE_S = 0.006
LEVEL = 0.5

_TONES_HZ = 375.0 + 187.5 * np.arange(18)  # the lowest and the highest are for sync alone
_LOW, _HIGH = 0, 17
_SYNC = (_HIGH, _LOW, _HIGH, _LOW)
_DATA = HASH_BITS // 4
_CHECK = 4
_SYMBOLS = len(_SYNC) + _DATA + _CHECK
_DECODE_HZ = 12_000
_WINDOW = int(SYMBOL_S * _DECODE_HZ)
_HOP = _WINDOW // 8
_HOPS_PER_SYMBOL = _WINDOW // _HOP
_BLOCK = 8_192  # frames analysed at once: bounds the memory, not the result
_MIN_SYNC = 0.6  # share of a symbol's energy on the expected tone; noise and speech stay far below
_MIN_ENERGY = 1e-5  # mean square of a window that is worth reading


@dataclass(frozen=True, slots=True)
class ToneMark:
    """One hash read from audio, and where its tones lie, to within about 4 ms."""

    hash_hex: str
    start_sample: int
    end_sample: int


def encode(hash_hex: str, rate_hz: int) -> Samples:
    """Tones for 12 hexadecimal digits: 0.332 s, float32 mono, silent for 6 ms at both ends."""
    digits = [int(digit, 16) for digit in hash_hex]
    symbols = [*_SYNC, *(1 + digit for digit in [*digits, *_check(digits)])]
    length = round(SYMBOL_S * rate_hz)
    steps = np.repeat(_TONES_HZ[symbols], length) * (2 * np.pi / rate_hz)
    tones = LEVEL * np.sin(np.cumsum(steps))
    fade = np.sin(np.linspace(0, np.pi / 2, length // 8)) ** 2
    tones[: len(fade)] *= fade
    tones[-len(fade) :] *= fade[::-1]
    silence = np.zeros(round(SILENCE_S * rate_hz))
    samples: Samples = np.concatenate([silence, tones, silence]).astype(np.float32)
    return samples


def decode(samples: npt.ArrayLike, rate_hz: int) -> list[ToneMark]:
    """All hashes in mono audio of any rate from 8 kHz up, in order; doubled ones appear twice.

    A hash that its check symbols do not confirm is not reported.
    """
    mono = np.asarray(samples, np.float32)
    if rate_hz != _DECODE_HZ:
        mono = soxr.resample(mono, rate_hz, _DECODE_HZ)
    margin = np.zeros(2 * _WINDOW, np.float32)  # a trimmed edge must not hide a symbol
    shares = _tone_shares(np.concatenate([margin, mono, margin]))
    scores = _sync_scores(shares)
    marks: list[ToneMark] = []
    at = 0
    scale = rate_hz / _DECODE_HZ
    while at < len(scores):
        if scores[at] < _MIN_SYNC or (digits := _read(shares, at)) is None:
            at += 1
            continue
        best = at + int(np.argmax(scores[at : at + _HOPS_PER_SYMBOL]))
        best = best if _read(shares, best) == digits else at
        start = max(0, best * _HOP - len(margin))
        end = best * _HOP - len(margin) + _SYMBOLS * _WINDOW
        mark = "".join(f"{digit:x}" for digit in digits)
        marks.append(ToneMark(mark, round(start * scale), round(min(end, len(mono)) * scale)))
        at = best + (_SYMBOLS - 1) * _HOPS_PER_SYMBOL
    return marks


def _check(digits: list[int]) -> list[int]:
    crc = zlib.crc32(bytes(digits)) & 0xFFFF
    return [crc >> 12 & 15, crc >> 8 & 15, crc >> 4 & 15, crc & 15]


def _tone_shares(mono: Samples) -> npt.NDArray[np.float32]:
    """Share of each window's energy on each tone, shape (frames, tones); 0 where it is quiet."""
    taper = np.hanning(_WINDOW + 1)[:-1]
    angles = 2 * np.pi * np.outer(np.arange(_WINDOW), _TONES_HZ) / _DECODE_HZ
    basis = (taper[:, None] * np.concatenate([np.cos(angles), np.sin(angles)], axis=1)).astype(
        np.float32
    )
    frames = np.lib.stride_tricks.sliding_window_view(mono, _WINDOW)[::_HOP]
    full = 0.5 * float(np.sum(taper)) ** 2  # what a pure tone of mean square 1 gives
    blocks = []
    for at in range(0, len(frames), _BLOCK):
        block = np.ascontiguousarray(frames[at : at + _BLOCK])
        parts = (block @ basis) ** 2
        energy = np.einsum("ij,ij->i", block * taper.astype(np.float32), block)[:, None]
        energy /= float(np.sum(taper))
        tones = (parts[:, : len(_TONES_HZ)] + parts[:, len(_TONES_HZ) :]) / full
        blocks.append(np.where(energy > _MIN_ENERGY, tones / np.maximum(energy, 1e-12), 0))
    shares: npt.NDArray[np.float32] = np.concatenate(blocks).astype(np.float32)
    return shares


def _sync_scores(shares: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """How well a sync begins at each frame: the smallest of the last three symbols' shares.

    The first symbol may have been faded or trimmed away and is not needed.
    """
    frames = len(shares) - (_SYMBOLS - 1) * _HOPS_PER_SYMBOL
    if frames <= 0:
        return np.zeros(0, np.float32)
    expected = [
        shares[i * _HOPS_PER_SYMBOL : i * _HOPS_PER_SYMBOL + frames, tone]
        for i, tone in enumerate(_SYNC)
        if i > 0
    ]
    scores: npt.NDArray[np.float32] = np.min(expected, axis=0)
    return scores


def _read(shares: npt.NDArray[np.float32], at: int) -> list[int] | None:
    first = at + len(_SYNC) * _HOPS_PER_SYMBOL
    rows = shares[first : first + (_DATA + _CHECK) * _HOPS_PER_SYMBOL : _HOPS_PER_SYMBOL]
    if len(rows) < _DATA + _CHECK:
        return None
    digits = [int(digit) for digit in np.argmax(rows[:, _LOW + 1 : _HIGH], axis=1)]
    data, check = digits[:_DATA], digits[_DATA:]
    return data if check == _check(data) else None
