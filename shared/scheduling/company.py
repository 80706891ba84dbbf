"""When a job among others will be done. Pure: how far all of them are and were in, seconds out.

A job's own rate says how fast it went; how fast it will go depends on the company. The farm gives
jobs audio by turn and by deadline, but devices take time by the segment too, so that a job beside
one with longer sentences gets fewer of its own done in a second. And a neighbour leaves at its end.
So the farm's whole pace of late is taken as what stays, and it is spent on what is left of the job
and on as much of each neighbour as will be rendered meanwhile: as much for each character of the
job as of late, and no more than it has.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from shared.scheduling.cost import Cost
from shared.scheduling.pace import Mark, window_base
from shared.scheduling.pools import SHARED_POOL
from shared.tiers import Tier

Owner = tuple[Tier, str]  # a tenant in a tier

_GOES_FIRST = 1 / SHARED_POOL.late_bulk_share
SHARE_WINDOW_S = 10.0  # shorter than a rate's: who has come meanwhile shows in it at once
_PRIOR_CHARS = 600.0  # what is expected of a neighbour weighs as much as so much of the job


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another job: what it had settled when, oldest first, the last one now; and what it has left.

    `expected`: how many of its characters the policy gives for each of the job's.
    """

    marks: Sequence[Mark]
    chars_left: int
    segments_left: int
    expected: float = 1.0


def expected_share(mine: Owner, other: Owner, live_jobs: Mapping[Owner, int]) -> float:
    """What the policy gives another job for each character of one's own, while both wait.

    `live_jobs` is how many jobs each owner has: in a tier tenants share evenly, then their jobs.
    Of two tiers the more urgent one goes first, and the other one gets little beside it.
    """
    if mine[0] is not other[0]:
        urgent = list(Tier).index(other[0]) < list(Tier).index(mine[0])
        return _GOES_FIRST if urgent else 0.0
    return max(1, live_jobs.get(mine, 0)) / max(1, live_jobs.get(other, 0))


def time_left_s(
    marks: Sequence[Mark],
    now: Mark,
    cost: Cost,
    *,
    chars_left: int,
    segments_left: int,
    neighbours: Sequence[Neighbour] = (),
) -> float | None:
    """Seconds until the job's last segment is spoken; None: too little is done to tell.

    The farm's pace is that of the job and its neighbours together, in the job's own window.
    """
    base = window_base(marks, now)
    if base is None:
        return None
    own = [*marks, now]
    paid = cost.of(segments=now.segments - base.segments, chars=now.chars - base.chars)
    due = cost.of(segments=segments_left, chars=chars_left)
    for one in neighbours:
        chars, segments, _ = _meanwhile(one.marks, own, base.at)
        paid += cost.of(segments=segments, chars=chars)
        # Less urgent tiers get nothing but what was in the queues before, which is out soon.
        lately_s = SHARE_WINDOW_S if one.expected > 0 else SHARE_WINDOW_S / 2
        theirs, _, mine = _meanwhile(one.marks, own, max(base.at, now.at - lately_s))
        share = (theirs + _PRIOR_CHARS * one.expected) / (mine + _PRIOR_CHARS)
        if one.chars_left > 0:
            part = min(1.0, share * chars_left / one.chars_left)
            due += part * cost.of(segments=one.segments_left, chars=one.chars_left)
    return due * (now.at - base.at) / paid if paid > 0 else None


def _meanwhile(
    marks: Sequence[Mark], own: Sequence[Mark], since: float
) -> tuple[float, float, float]:
    """(characters, segments) of a neighbour since then, or since it began; the job's characters."""
    if not marks:
        return 0.0, 0.0, 0.0
    began = max(since, marks[0].at)
    chars, segments = _at(marks, began)
    last = marks[-1]
    mine = own[-1].chars - _at(own, began)[0]
    return last.chars - chars, last.segments - segments, mine


def _at(marks: Sequence[Mark], at: float) -> tuple[float, float]:
    """(characters, segments) settled at a time, between two marks in proportion."""
    after = bisect_right(marks, at, key=attrgetter("at"))
    if after == 0:
        return marks[0].chars, marks[0].segments
    before = marks[after - 1]
    if after == len(marks):
        return before.chars, before.segments
    then = marks[after]
    part = (at - before.at) / (then.at - before.at)
    return (
        before.chars + part * (then.chars - before.chars),
        before.segments + part * (then.segments - before.segments),
    )
