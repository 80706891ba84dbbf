"""Which batch sizes of an engine are worth running: whole, sounding as alone, and faster. Pure."""

from collections.abc import Mapping, Sequence

from shared.errors import FatalError
from worker.tuning.figures import Figures

QUALITY_DB = -60.0  # a difference below this is not to be heard under speech
_WORTH = 1.02  # a larger batch must be faster by this, or it only adds latency


def worthwhile(figures: Sequence[Figures]) -> tuple[Mapping[int, float], str]:
    """Seconds at worst of each size worth running, ascending with the size; and why no more.

    Raises FatalError when there is none.
    """
    batch_s: dict[int, float] = {}
    best = slowest_s = 0.0
    sizes = sorted({each.batch for each in figures})
    for size in sizes:
        mine = [each for each in figures if each.batch == size]
        if flaw := next(filter(None, map(_flaw, mine)), ""):
            if not batch_s:
                raise FatalError(f"the engine cannot be tuned: {flaw}")
            return batch_s, flaw
        slowest_s = max(slowest_s, *(each.batch_s for each in mine))
        rate = size / slowest_s
        if rate >= best * _WORTH:
            batch_s[size] = slowest_s
            best = rate
    if not batch_s:
        raise FatalError("the engine cannot be tuned: nothing was measured")
    whole = sizes[-1] in batch_s
    return batch_s, "the largest measured" if whole else "a larger one is no faster"


def _flaw(each: Figures) -> str:
    lengths = "mixed lengths" if each.mixed else f"{each.chars} characters"
    batch = f"{each.batch} of {lengths}"
    if each.fault:
        return f"the engine fails at {batch}: {each.fault}"
    if each.difference_db is not None and each.difference_db > QUALITY_DB:
        return f"at {batch} sentences sound different from alone"
    return ""
