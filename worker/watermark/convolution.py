"""The error-correcting code of a payload: convolutional, K = 9, rate 1/4, with a list decoder.

The generators 463, 535, 733, 745 (octal) have free distance 24 (Larsen, IEEE Trans. Inf. Theory,
1973). The decoder is the parallel list Viterbi algorithm (Seshadri and Sundberg, IEEE Trans.
Commun., 1994): the best few paths, of which a tag chooses. Pure; knows nothing of what is coded.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

GENERATORS = (0o463, 0o535, 0o733, 0o745)
RATE = len(GENERATORS)
MEMORY = 8  # bits; as many zeros end a message
STATES = 1 << MEMORY


def coded_length(bits: int) -> int:
    """Coded bits of a message."""
    return (bits + MEMORY) * RATE


def encode(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Coded bits of a message of 0 and 1, shape (coded_length(len(bits)),)."""
    padded = np.concatenate([bits, np.zeros(MEMORY, np.uint8)])
    coded = np.empty((len(padded), RATE), np.uint8)
    for place, generator in enumerate(GENERATORS):
        taps = [generator >> (MEMORY - lag) & 1 for lag in range(MEMORY + 1)]
        coded[:, place] = np.convolve(padded, taps)[: len(padded)] % 2
    return coded.reshape(-1)


def decode(llrs: npt.NDArray[np.float32], paths: int = 1) -> list[npt.NDArray[np.uint8]]:
    """The most likely messages, best first, at most `paths`.

    `llrs` has one number a coded bit, positive for 0, of any common scale.
    """
    steps = llrs.reshape(-1, RATE).astype(np.float64)
    sources, outputs = _trellis()
    branch = outputs @ steps.T  # (states * 2, steps): how well each transition fits
    metrics = np.full((STATES, paths), -np.inf)
    metrics[0, 0] = 0.0
    choices = np.empty((len(steps), STATES, paths), np.uint16)
    for step in range(len(steps)):
        gained = branch[:, step].reshape(STATES, 2, 1)
        arriving = (metrics[sources] + gained).reshape(STATES, 2 * paths)
        order = _best(arriving, paths)
        choices[step] = order
        metrics = np.take_along_axis(arriving, order, axis=1)
    ranks = [rank for rank in range(paths) if np.isfinite(metrics[0, rank])]
    return [_traced(choices, sources, rank, paths)[: len(steps) - MEMORY] for rank in ranks]


def _best(arriving: npt.NDArray[np.float64], paths: int) -> npt.NDArray[np.intp]:
    """Places of the best `paths` in each row, best first; the earlier one of equals."""
    if paths == 1:
        first: npt.NDArray[np.intp] = arriving.argmax(axis=1)[:, None]
        return first
    order: npt.NDArray[np.intp] = np.argsort(-arriving, axis=1, kind="stable")[:, :paths]
    return order


def _traced(
    choices: npt.NDArray[np.uint16],
    sources: npt.NDArray[np.intp],
    rank: int,
    paths: int,
) -> npt.NDArray[np.uint8]:
    """The input bits along one path, from the zero state back to the beginning."""
    bits = np.empty(len(choices), np.uint8)
    state = 0
    for step in range(len(choices) - 1, -1, -1):
        bits[step] = state >> (MEMORY - 1)
        arrived, rank = divmod(int(choices[step, state, rank]), paths)
        state = int(sources[state, arrived])
    return bits


@cache
def _trellis() -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """Sources of each state, (states, 2); and the signs each transition sends, (states * 2, RATE).

    A state is the last eight input bits, the newest on top.
    """
    states = np.arange(STATES)
    sources = np.stack([(states << 1 & STATES - 1) | oldest for oldest in (0, 1)], axis=1)
    newest = states >> (MEMORY - 1)
    register = (newest[:, None] << MEMORY) | sources  # nine bits: the input, then the memory
    sent = np.empty((STATES, 2, RATE))
    for place, generator in enumerate(GENERATORS):
        parity = np.array([int(value & generator).bit_count() % 2 for value in register.ravel()])
        sent[:, :, place] = (1 - 2 * parity).reshape(STATES, 2)
    return sources, sent.reshape(STATES * 2, RATE)
