"""What a segment costs a device: so much each, and so much a character. Pure: a history in.

A static engine takes the same time for any batch, a small one on a CPU takes it by the length of
the text, and a book has pages of long sentences and pages of short ones. So an estimate that counts
only characters, or only segments, is off by as much as the pages differ; this reads from what was
finished lately which of the two it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from shared.scheduling.forecast import Spoken
from shared.scheduling.together import batch_ends

RUN = 8  # segments: a full batch
GAP_S = 2.0  # a longer silence between two segments is idle time
_PRIOR_RUNS = 2.0  # how many runs of history the prior weighs as much as
_PRIOR_SPREAD = 0.2  # runs differ in length by some 20 % in ordinary prose
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
    """Least squares of time over characters, for runs of segments in order of completion.

    Shrunk towards the typical cost, and neither part below zero.
    """
    found = list(_runs(sorted(spoken, key=lambda one: one.done_at)))
    if not found:
        return TYPICAL
    mean_chars = fmean(chars for chars, _ in found)
    mean_s = fmean(took_s for _, took_s in found)
    if mean_chars <= 0 or mean_s <= 0:
        return TYPICAL
    # Both in units of their means: the slope is then the share that goes by characters.
    points = [(chars / mean_chars - 1, took_s / mean_s - 1) for chars, took_s in found]
    spread = sum(x * x for x, _ in points)
    prior = _PRIOR_RUNS * _PRIOR_SPREAD**2
    slope = (sum(x * y for x, y in points) + _PRIOR_SHARE * prior) / (spread + prior)
    share = min(max(slope, 0.0), 1.0)
    return Cost((1 - share) * mean_chars, share)


def _runs(spoken: Sequence[Spoken]) -> Iterator[tuple[float, float]]:
    """(characters, seconds) a segment, of each run of RUN segments or more done without a rest."""
    begun: int | None = None  # the last segment before the run
    for place in batch_ends([one.done_at for one in spoken])[:-1]:
        if begun is not None and (count := place - begun) >= RUN:
            run = spoken[begun : place + 1]
            chars = sum(one.chars for one in run[1:])
            yield chars / count, (run[-1].done_at - run[0].done_at) / count
            begun = place
        if spoken[place + 1].done_at - spoken[place].done_at > GAP_S:
            begun = None
        elif begun is None:
            begun = place
