"""Audio that shares objects comes back segment by segment, in few requests."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from shared.ledger.segment_records import SegmentRecord
from shared.segments import SegmentKind, SegmentState
from shared.settings import Settings
from shared.storage import S3Store
from worker.fetching import STRETCH, fetched


@dataclass
class Counting(S3Store):
    """The real store; counts what is asked of it."""

    settings: Settings
    asked: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__(self.settings)

    def get(self, key: str, offset_bytes: int = 0, size_bytes: int | None = None) -> bytes:
        self.asked[key] += 1
        return super().get(key, offset_bytes, size_bytes)


def row(index: int, key: str | None, offset_bytes: int = 0, size_bytes: int = 0) -> SegmentRecord:
    return SegmentRecord(
        index=index,
        part=0,
        kind=SegmentKind.SPEECH,
        state=SegmentState.DONE,
        start=0,
        end=1,
        pause_after_s=0.0,
        reason="",
        take=0,
        attempt=1,
        token=1,
        object_key=key,
        offset_bytes=offset_bytes,
        size_bytes=size_bytes,
        sha256=None,
        samples=0,
        rate_hz=0,
        error=None,
        fallback=False,
        losses=0,
    )


def test_every_segment_gets_its_own_bytes_whatever_it_shares_an_object_with(
    s3_settings: Settings,
) -> None:
    chance = random.Random(7)
    store = Counting(s3_settings)
    store.ensure_bucket()
    rows: list[SegmentRecord] = []
    for first in range(0, 100, 5):  # two nodes take turns, retries end up elsewhere
        key, offset_bytes, pieces = f"audio/{first}", 0, []
        for index in chance.sample(range(first, first + 5), 5):
            piece = f"[{index}]".encode() * chance.randint(1, 400)
            rows.append(row(index, key, offset_bytes, len(piece)))
            pieces.append(piece)
            offset_bytes += len(piece)
        store.put(key, b"".join(pieces), content_type="audio/flac")
    rows += [row(100, None), row(101, "audio/alone")]
    store.put("audio/alone", b"[101]", content_type="audio/flac")
    rows.sort(key=lambda r: r.index)
    chance.shuffle(swapped := rows[40:60])
    rows[40:60] = [replace(r, index=40 + n) for n, r in enumerate(swapped)]

    found = list(fetched(store, iter(rows)))

    assert [r for r, _ in found] == rows
    for r, data in found:
        if r.object_key is None:
            assert data is None
        else:
            assert data == store.get(r.object_key, r.offset_bytes, r.size_bytes or None)
            assert len(set(data.split(b"[")[1:])) == 1
    assert sum(store.asked.values()) - 101 <= 21 * 2 + len(rows) // STRETCH


def test_a_missing_object_is_no_bytes_for_the_segment_that_needs_it_and_harms_no_other(
    s3_settings: Settings,
) -> None:
    store = S3Store(s3_settings)
    store.ensure_bucket()
    store.put("audio/there", b"abc", content_type="audio/flac")
    rows = [row(0, "audio/there", 0, 3), row(1, "audio/gone", 0, 3), row(2, "audio/there", 0, 2)]
    assert [data for _row, data in fetched(store, rows)] == [b"abc", b"", b"ab"]


def test_nothing_to_fetch_is_nothing(s3_settings: Settings) -> None:
    assert list(fetched(S3Store(s3_settings), [])) == []
