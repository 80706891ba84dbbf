"""Float samples to 16-bit integers: one rule for every format."""

import numpy as np
import numpy.typing as npt

from worker.engines.base import Samples


def to_int16(samples: Samples) -> npt.NDArray[np.int16]:
    """Round to the nearest of 65,536 steps; what is louder than full scale is clipped.

    No dither: speech masks its own rounding, and equal input must give equal files.
    """
    scaled = np.rint(samples * 32_768.0)
    whole: npt.NDArray[np.int16] = np.clip(scaled, -32_768, 32_767).astype("<i2")
    return whole
