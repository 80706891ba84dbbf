"""Marks one deliverable as it streams by: what assembly puts between limiter and encoder.

The in-band mark always; the one above 18 kHz too where the rate keeps it.
"""

from worker.engines.base import Samples
from worker.watermark import highband
from worker.watermark.chips import ChipMap
from worker.watermark.convolution import encode
from worker.watermark.inband import InBandMarker
from worker.watermark.keys import MarkKey
from worker.watermark.trace import Trace, payload

HEADROOM_DB = 1.5  # what a limiter should leave: the mark may lift a peak by so much


class Marker:
    """Feed float32 mono blocks to `write`, then call `finish`; join what they return.

    As many samples come out as go in, at most 106 ms later, and the same bits whatever the blocks.
    """

    def __init__(self, key: MarkKey, trace: Trace, rate_hz: int) -> None:
        self.marks: tuple[str, ...] = ("in-band",)
        overlay = None
        if rate_hz in highband.RATES_HZ:
            overlay = highband.Overlay(key, trace.trace_id, rate_hz)
            self.marks = ("in-band", "high-band")
        self._inband = InBandMarker(
            rate_hz,
            ChipMap(key),
            encode(payload(key, trace.trace_id)),
            trace.start_block,
            overlay=overlay,
        )

    def write(self, samples: Samples) -> Samples:
        """Mark a block; returns what is ready, perhaps nothing. UsageError: not finite numbers."""
        return self._inband.write(samples)

    def finish(self) -> Samples:
        """The rest of the file."""
        return self._inband.finish()
