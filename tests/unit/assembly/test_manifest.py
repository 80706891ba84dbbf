"""manifest.json is valid JSON, complete, and written without holding the book in memory."""

import json
import tracemalloc
from collections.abc import Iterator

from worker.assembly.manifest import Omission, SegmentEntry, manifest_json


def entry(index: int) -> SegmentEntry:
    return SegmentEntry(
        index, 0, "speech", "done", index, index + 1, index * 10, index * 10 + 9, 0.3, 0, 1, "00"
    )


def test_the_manifest_names_every_segment_skip_and_gap() -> None:
    written = b"".join(
        manifest_json(
            job={"id": "J", "title": 'A "quoted" 标题'},
            files=[{"name": "audio.mp3"}],
            segments=map(entry, range(3)),
            skips=[Omission(1, 0, 5, 6, "symbol: SMILE")],
            gaps=[Omission(2, 0, 7, 9, "crashed alone")],
        )
    )
    manifest = json.loads(written)
    assert manifest["job"]["title"] == 'A "quoted" 标题'
    assert [s["index"] for s in manifest["segments"]] == [0, 1, 2]
    assert manifest["skips"][0]["reason"] == "symbol: SMILE"
    assert manifest["gaps"][0] == {
        "index": 2,
        "part": 0,
        "start": 7,
        "end": 9,
        "reason": "crashed alone",
    }


def test_twenty_thousand_segments_pass_through_in_little_memory() -> None:
    def segments() -> Iterator[SegmentEntry]:
        yield from map(entry, range(20_000))

    tracemalloc.start()
    size = sum(
        len(piece)
        for piece in manifest_json(job={}, files=[], segments=segments(), skips=[], gaps=[])
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 3_000_000
    assert peak < 1_000_000
