"""What a segment costs a device: so much each, and so much a character. Pure: a history in.

A static engine takes the same time for any batch, a small one on a CPU takes it by the length of
the text, and a book has pages of long sentences and pages of short ones. So an estimate that counts
only characters, or only segments, is off by as much as the pages differ; this reads from what was
finished lately which of the two it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from shared.scheduling.forecast import Spoken

BIN = 12  # segments: more than a batch, so that its edges matter little
GAP_S = 2.0  # a longer silence between two segments is idle time
_PRIOR_BINS = 2.0  # how many bins of history the prior weighs as much as
_PRIOR_SHARE = 0.7  # of a segment's cost goes by its characters
_TYPICAL_CHARS = 75.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Relative: a segment of `n` characters costs `per_segment + n * per_char`."""

    per_segment: float
    per_char: float

    def of(self, *, segments: float, chars: float) -> float:
        """What so many segments with so many characters in all cost."""
        return self.per_segment * segments + self.per_char * chars


TYPICAL = Cost((1 - _PRIOR_SHARE) * _TYPICAL_CHARS, _PRIOR_SHARE)


def cost_of(spoken: Sequence[Spoken]) -> Cost:
    """Least squares of time over characters, for bins of segments in order of completion.

    Shrunk towards the typical cost, and neither part below zero.
    """
    found = list(_bins(sorted(spoken, key=lambda one: one.done_at)))
    if not found:
        return TYPICAL
    mean_chars = fmean(chars for chars, _ in found)
    mean_s = fmean(took_s for _, took_s in found)
    if mean_chars <= 0 or mean_s <= 0:
        return TYPICAL
    # Both in units of their means: the slope is then the share that goes by characters.
    points = [(chars / mean_chars - 1, took_s / mean_s - 1) for chars, took_s in found]
    spread = sum(x * x for x, _ in points)
    prior = _PRIOR_BINS * 0.15**2  # bins differ in length by some 15 % in ordinary prose
    slope = (sum(x * y for x, y in points) + _PRIOR_SHARE * prior) / (spread + prior)
    share = min(max(slope, 0.0), 1.0)
    return Cost((1 - share) * mean_chars / BIN, share)


def _bins(spoken: Sequence[Spoken]) -> list[tuple[int, float]]:
    """(characters, seconds) of each run of BIN segments that was done without a rest."""
    found = []
    for start in range(0, len(spoken) - BIN, BIN):
        run = spoken[start : start + BIN + 1]
        if all(after.done_at - before.done_at <= GAP_S for before, after in pairwise(run)):
            found.append((sum(one.chars for one in run[1:]), run[-1].done_at - run[0].done_at))
    return found
