"""A plan is written in chunks, and no part can be assembled before all of it is written."""

from hypothesis import given
from hypothesis import strategies as st

from shared.ledger.plans import PlannedSegment, chunks
from shared.segments import SegmentKind

KINDS = st.lists(st.sampled_from(list(SegmentKind)), max_size=6)


def plan(parts: list[list[SegmentKind]]) -> list[PlannedSegment]:
    pieces = [(part, kind) for part, kinds in enumerate(parts) for kind in kinds]
    return [
        PlannedSegment(i, part, kind, i, i + 1, "", 0.0, "", 0.0, "")
        for i, (part, kind) in enumerate(pieces)
    ]


@given(st.lists(KINDS, max_size=4), st.integers(1, 5))
def test_with_the_last_speech_of_a_part_comes_all_that_is_left_of_it(
    parts: list[list[SegmentKind]], size: int
) -> None:
    rows = plan(parts)
    cut = list(chunks(rows, size))
    assert [row for chunk in cut for row in chunk] == rows
    assert all(len(chunk) >= size for chunk in cut[:-1])
    written: list[PlannedSegment] = []
    for chunk in cut:
        written += chunk
        for part in {row.part for row in chunk}:
            left = [row for row in rows[len(written) :] if row.part == part]
            spoken = any(row.kind is SegmentKind.SPEECH for row in written if row.part == part)
            assert not (spoken and left) or any(r.kind is SegmentKind.SPEECH for r in left)
