"""ETAs of books that were really rendered: recorded marks of real farms on a simulated device.

`python -m benchmarks.promises --traces` records such runs. Times are seconds from the submit.
"""

import json
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest

from shared.scheduling.company import Neighbour, expected_share, time_left_s
from shared.scheduling.cost import Cost
from shared.scheduling.pace import Mark
from shared.tiers import Tier

TRACES = sorted((Path(__file__).parent / "traces").glob("*.json"))
WITHIN = 0.15  # what is promised at a fifth of a book, here held for most of its way
TRUE_COST = Cost(per_segment=1.0, per_char=0.0)  # of the device that was recorded


def owner(job: dict[str, Any]) -> tuple[Tier, str]:
    return Tier(job["tier"]), job["tenant"]


def marks_until(job: dict[str, Any], at: float) -> list[Mark]:
    """Its marks up to that time."""
    marks = [Mark(*mark) for mark in job["marks"]]
    return marks[: bisect_right([mark.at for mark in marks], at)]


def errors(trace: dict[str, Any]) -> list[tuple[float, float]]:
    """(fraction, relative error of the time left) at each reading of the book."""
    book, *others = trace["jobs"]
    owners = {owner(job): 1 for job in trace["jobs"]}
    found = []
    for reading in trace["readings"]:
        now = Mark(*reading)
        neighbours = []
        for other in others:
            seen = marks_until(other, now.at)
            last = seen[-1] if seen else Mark(now.at, 0, 0)
            neighbours.append(
                Neighbour(
                    seen,
                    other["chars"] - last.chars,
                    other["segments"] - last.segments,
                    expected_share(owner(book), owner(other), owners),
                )
            )
        left = time_left_s(
            marks_until(book, now.at),
            now,
            TRUE_COST,
            chars_left=book["chars"] - now.chars,
            segments_left=book["segments"] - now.segments,
            neighbours=neighbours,
        )
        if left is not None:
            found.append((now.chars / book["chars"], left / (trace["rendered_s"] - now.at) - 1))
    return found


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_most_of_the_way_the_time_left_is_within_what_is_promised(path: Path) -> None:
    trace = json.loads(path.read_text(encoding="utf-8"))
    found = [error for fraction, error in errors(trace) if 0.24 <= fraction <= 0.6]
    assert len(found) >= 10
    assert max(map(abs, found)) <= WITHIN, found


def test_at_a_fifth_it_is_within_a_tenth() -> None:
    for path in TRACES:
        trace = json.loads(path.read_text(encoding="utf-8"))
        early = [error for fraction, error in errors(trace) if 0.17 <= fraction <= 0.24]
        assert early
        assert max(map(abs, early)) <= 0.1, (path.stem, early)
