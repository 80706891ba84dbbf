"""Whether a device takes its time by the length of the text or by the segment."""

import random

import pytest

from benchmarks.planned import FOUR_CHAPTERS, sentences
from shared.scheduling.cost import TYPICAL, cost_of
from shared.scheduling.forecast import Spoken


def history(*, per_segment_s: float, per_char_s: float, noise: float, batch: int) -> list[Spoken]:
    """300 segments of a book whose pages differ, finished in batches."""
    luck = random.Random(7)
    at, made = 0.0, list[Spoken]()
    for first in range(0, 300, batch):
        page_chars = 110 if (first // 50) % 2 else 50
        lengths = [max(10, round(luck.gauss(page_chars, 25))) for _ in range(batch)]
        took_s = batch * per_segment_s + sum(lengths) * per_char_s
        at += took_s * luck.uniform(1 - noise, 1 + noise)
        made += [Spoken(at - 1, at, chars, chars / 15) for chars in lengths]
    return made


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize(
    ("per_segment_s", "per_char_s"), [(0.045, 0.0), (0.0, 0.0006), (0.015, 0.0004)]
)
def test_pages_of_short_sentences_are_foreseen(
    per_segment_s: float, per_char_s: float, noise: float, batch: int
) -> None:
    """given the book's first part / then a part of half as long sentences is within 15 %."""
    cost = cost_of(
        history(per_segment_s=per_segment_s, per_char_s=per_char_s, noise=noise, batch=batch)
    )
    long = cost.of(segments=100, chars=10_000)
    short = cost.of(segments=200, chars=10_000)
    truly = (200 * per_segment_s + 10_000 * per_char_s) / (
        100 * per_segment_s + 10_000 * per_char_s
    )
    assert short / long == pytest.approx(truly, rel=0.15)


def test_without_a_history_it_is_the_typical_one() -> None:
    assert cost_of([]) == TYPICAL
    assert cost_of([Spoken(0, 1, 50, 3.0)] * 40) == TYPICAL


def test_a_fifth_of_a_real_book_is_enough_to_foresee_the_rest() -> None:
    """Its first chapter has twice as long sentences as the others; a batch takes a second."""
    lengths = [len(text) for text in sentences(FOUR_CHAPTERS.read_text())]
    at_once = 8
    done = next(n for n in range(0, len(lengths), at_once) if sum(lengths[:n]) > sum(lengths) / 5)
    cost = cost_of(
        [
            Spoken(n // at_once, n // at_once + 1 + n % at_once / 100, chars, chars / 15)
            for n, chars in enumerate(lengths[: done + 1])
        ]
    )
    paid = cost.of(segments=done, chars=sum(lengths[:done]))
    left = cost.of(segments=len(lengths) - done, chars=sum(lengths[done:]))
    assert left / paid == pytest.approx((len(lengths) - done) / done, rel=0.15)
