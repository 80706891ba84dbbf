"""What the mark does to the sound, by two judges: PESQ (wide band) and DNSMOS. Both optional."""

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.watermark.attacks import resampled
from benchmarks.watermark.speech import RATE_HZ
from benchmarks.watermark.trials import drawn, mark
from worker.engines.base import Samples

_JUDGED_HZ = 16_000
_LENGTH_S = 10.0


def measure_quality(speech: Mapping[str, Samples], excerpts: int) -> dict[str, Any]:
    """Scores of excerpts of all voices. What is not installed is not in the answer."""
    scores: dict[str, list[float]] = {"pesq": [], "dnsmos_change": []}
    by_voice: dict[str, list[float]] = {}
    pesq, dnsmos = _pesq(), _dnsmos()
    for number in range(excerpts):
        it = drawn(speech, "quality", number, _LENGTH_S)
        plain = resampled(it.around, RATE_HZ, _JUDGED_HZ)
        marked = resampled(mark(it.around, RATE_HZ, it.key, it.trace), RATE_HZ, _JUDGED_HZ)
        if pesq is not None:
            score = float(pesq(_JUDGED_HZ, plain, marked, "wb"))
            scores["pesq"].append(score)
            by_voice.setdefault(it.voice, []).append(score)
        if dnsmos is not None:
            before, after = (
                dnsmos(np.clip(sound, -1, 1), sr=_JUDGED_HZ)["ovrl_mos"]
                for sound in (plain, marked)
            )
            scores["dnsmos_change"].append(float(after - before))
    figures: dict[str, Any] = {"excerpts": excerpts}
    if scores["pesq"]:
        figures["pesq_mean"] = round(statistics.mean(scores["pesq"]), 4)
        figures["pesq_min"] = round(min(scores["pesq"]), 4)
        figures["pesq_by_voice"] = {
            voice: round(statistics.mean(found), 4) for voice, found in sorted(by_voice.items())
        }
    if scores["dnsmos_change"]:
        figures["dnsmos_change"] = round(statistics.mean(scores["dnsmos_change"]), 4)
    return figures


def _pesq() -> Any:  # noqa: ANN401 - an optional package's function
    try:
        from pesq import pesq  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return pesq


def _dnsmos() -> Any:  # noqa: ANN401 - likewise
    try:
        from speechmos import dnsmos  # noqa: PLC0415 - extra `quality` only
    except ImportError:
        return None
    return dnsmos.run
