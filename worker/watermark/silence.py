"""Digital silence in a stream: runs of exact zeros, which no mark may touch. Pure.

A zero counts as silent when it lies in a run of at least `RUN` zeros; single zeros are crossings.
"""

import numpy as np
import numpy.typing as npt

from worker.engines.base import Samples

RUN = 32  # samples; no voice stays at exact zero so long, and a pause is thousands


def silent(samples: Samples) -> npt.NDArray[np.bool_]:
    """Which samples are digital silence, as far as these samples tell. Shape as given."""
    found = np.zeros(len(samples), bool)
    edges = np.flatnonzero(np.diff(samples == 0.0, prepend=False, append=False))
    for start, end in edges.reshape(-1, 2)[np.diff(edges.reshape(-1, 2), axis=1)[:, 0] >= RUN]:
        found[start:end] = True
    return found
