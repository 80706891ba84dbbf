"""Segments that end together, found in the times of their completion alone."""

from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.together import batch_ends


def test_segments_that_end_one_by_one_are_batches_of_one() -> None:
    assert batch_ends([0.1 * n for n in range(20)]) == list(range(20))


@given(
    sizes=st.lists(st.integers(1, 8), min_size=3, max_size=20),
    batch_s=st.floats(0.05, 60.0),
    within_share=st.floats(0.0, 0.02),
)
def test_of_batches_the_last_members_are_found_however_fast_the_device(
    sizes: list[int], batch_s: float, within_share: float
) -> None:
    """given batches of any sizes of two or more, each member a little after the one before."""
    sizes = [max(2, size) for size in sizes]
    done_at = [
        batch_s * (batch + within_share * member)
        for batch, size in enumerate(sizes)
        for member in range(size)
    ]
    lasts, place = [], -1
    for size in sizes:
        place += size
        lasts.append(place)
    assert batch_ends(done_at) == lasts


def test_around_a_rest_no_place_within_a_batch_is_taken_for_an_end() -> None:
    before = [float(batch) for batch in range(4) for _ in range(8)]
    after = [3_600.0 + batch for batch in range(4) for _ in range(8)]
    assert {7, 31, 55, 63} <= set(batch_ends([*before, *after])) <= set(range(7, 64, 8))


def test_nothing_has_no_end() -> None:
    assert batch_ends([]) == []
