"""Rates and remaining times, on jobs whose pace is known."""

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.jobs import AudioFormat
from shared.scheduling.cost import Cost
from shared.scheduling.pace import (
    WINDOW_S,
    Assembled,
    Mark,
    assembly_s,
    recent_rate,
)

BY_CHARS = Cost(per_segment=0.0, per_char=1.0)


def job(*rates: float, chars: int = 50) -> list[Mark]:
    """A mark a second, of a job that makes so many characters in each of these seconds."""
    settled = accumulate(rates, initial=0.0)
    return [
        Mark(1_000.0 + second, int(total), int(total) // chars)
        for second, total in enumerate(settled)
    ]


def rate_of(marks: Sequence[Mark], now: Mark) -> float | None:
    """Characters a second."""
    return recent_rate(marks, now, BY_CHARS)


def test_a_steady_job_has_its_rate() -> None:
    *marks, now = job(*[600.0] * 20)
    assert rate_of(marks, now) == pytest.approx(600)


def test_a_neighbour_that_came_a_while_ago_has_halved_the_rate_and_not_less() -> None:
    """given 60 s alone / when another job shares the farm for 30 s / then half the rate counts."""
    *marks, now = job(*[600.0] * 60, *[300.0] * 30)
    assert rate_of(marks, now) == pytest.approx(300)


def test_a_job_that_stands_still_slows_down() -> None:
    marks = job(*[600.0] * 20)
    later = Mark(marks[-1].at + 20, marks[-1].chars, marks[-1].segments)
    assert rate_of(marks, later) == pytest.approx(200)  # 10 s at 600, then nothing


def test_a_slow_job_is_looked_at_for_longer() -> None:
    *marks, now = job(*[0.0] * 5, *[10.0] * 200)  # a segment every five seconds
    assert rate_of(marks, now) == pytest.approx(10, rel=0.05)


def test_too_little_shows_no_rate() -> None:
    assert rate_of([], Mark(5, 900, 30)) is None
    assert rate_of([Mark(1, 0, 0)], Mark(5, 90, 3)) is None


@given(
    rate=st.floats(20, 5_000),
    lengths=st.lists(st.integers(20, 200), min_size=200, max_size=200),
    batch=st.integers(1, 8),
    every_s=st.sampled_from([1.0, 3.0]),
)
def test_batches_and_uneven_sentences_move_the_rate_by_a_tenth_at_most(
    rate: float, lengths: list[int], batch: int, every_s: float
) -> None:
    now = Mark(0.0, 0, 0)
    marks = [now]
    for start in range(0, len(lengths), batch):
        said = lengths[start : start + batch]
        now = Mark(now.at + sum(said) / rate, now.chars + sum(said), now.segments + len(said))
        if now.at - marks[-1].at >= every_s:
            marks.append(now)
    found = rate_of(marks, now)
    if found is not None:
        assert found == pytest.approx(rate, rel=0.1)
    elif now.at > WINDOW_S:
        assert now.segments - marks[-2].segments < 4


def test_assembly_goes_by_what_it_took_before() -> None:
    assert assembly_s(600, AudioFormat.MP3, []) == pytest.approx(3.5)
    slow = [Assembled(audio_s=36_000, took_s=3_600)] * 3
    assert assembly_s(600, AudioFormat.MP3, slow) == pytest.approx(60, rel=0.05)
    short = [Assembled(audio_s=5, took_s=0.5)] * 20
    assert assembly_s(600, AudioFormat.MP3, short) == pytest.approx(3.1, rel=0.05)
