"""Which segments ended together. Pure: times of completion in, places out.

A batch ends all at once, and what ends together is committed together. So time may be measured from
the end of one batch to that of another, and never to a place within: there all of a batch's time
lies on one side, and its segments on both.
"""

from collections.abc import Sequence
from itertools import pairwise

_AROUND = 16  # gaps on either side that one is compared with: two full batches
_BETWEEN = 0.25  # of the longest of them: what is shorter may lie within a batch


def batch_ends(done_at: Sequence[float]) -> list[int]:
    """Places, in order of completion, of last members of batches; the last place is one of them.

    Where segments end one by one, most are. It does no harm that ends are left out near a rest, or
    of batches that are much shorter than others: what lies between two of them is whole all the
    same. `done_at` in seconds, ascending.
    """
    gaps_s = [after - before for before, after in pairwise(done_at)]
    ends = [
        place
        for place, gap_s in enumerate(gaps_s)
        if gap_s > _BETWEEN * max(gaps_s[max(0, place - _AROUND) : place + _AROUND + 1])
    ]
    return [*ends, len(done_at) - 1] if done_at else []
