"""Fetches the audio of a part's segments a stretch ahead of whoever assembles it.

Segments that ended together share an object, so a stretch needs few requests: one for each object,
of the range that its segments cover. Memory is bounded by two stretches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Protocol

from shared.errors import NotFoundError
from shared.ledger.segment_records import SegmentRecord

STRETCH = 32  # segments: about 6 MB of speech
FETCHERS = 4
LOOK_S = 0.2


class Source(Protocol):
    """An object store, as far as fetching needs one."""

    def get(self, key: str, offset_bytes: int = 0, size_bytes: int | None = None) -> bytes:
        """See ObjectStore."""
        ...


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes of an object, on their way; `start_bytes` is where in the object they begin."""

    start_bytes: int
    data: Future[bytes]

    def piece(self, row: SegmentRecord, progress: Callable[[], None]) -> bytes:
        first = row.offset_bytes - self.start_bytes
        while not self.data.done():  # its request ends by the store's time limits
            wait([self.data], timeout=LOOK_S)
            progress()
        try:
            data = self.data.result()
        except NotFoundError:
            return b""
        return data[first : first + row.size_bytes if row.size_bytes else None]


def fetched(
    store: Source,
    rows: Iterable[SegmentRecord],
    progress: Callable[[], None] = lambda: None,
) -> Iterator[tuple[SegmentRecord, bytes | None]]:
    """The rows in order, each with its stored bytes; None for a row without audio.

    `progress` is called now and then while the store is waited for. The bytes are not checked:
    they are none where the store has lost them. Raises StoreError.
    """
    rest = iter(rows)
    with ThreadPoolExecutor(FETCHERS, thread_name_prefix="fetch") as pool:
        ahead = _ask(store, pool, list(islice(rest, STRETCH)))
        while ahead:
            here, ahead = ahead, _ask(store, pool, list(islice(rest, STRETCH)))
            for row, found in here:
                yield row, None if found is None else found.piece(row, progress)


def _ask(
    store: Source, pool: ThreadPoolExecutor, rows: Sequence[SegmentRecord]
) -> list[tuple[SegmentRecord, _Range | None]]:
    spoken = sorted((r for r in rows if r.object_key is not None), key=_place)
    ranges = {
        key: _request(store, pool, key, list(together))
        for key, together in groupby(spoken, key=_key)
    }
    return [(r, None if r.object_key is None else ranges[r.object_key]) for r in rows]


def _request(
    store: Source, pool: ThreadPoolExecutor, key: str, rows: Sequence[SegmentRecord]
) -> _Range:
    start_bytes = rows[0].offset_bytes
    if any(row.size_bytes == 0 for row in rows):  # written before objects were shared
        return _Range(start_bytes, pool.submit(store.get, key))
    size_bytes = max(row.offset_bytes + row.size_bytes for row in rows) - start_bytes
    return _Range(start_bytes, pool.submit(store.get, key, start_bytes, size_bytes))


def _key(row: SegmentRecord) -> str:
    return row.object_key or ""


def _place(row: SegmentRecord) -> tuple[str, int]:
    return _key(row), row.offset_bytes
