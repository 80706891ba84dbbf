"""manifest.json: what was made of every character of the source, as a stream of JSON.

It is written segment by segment, so a book of 100,000 segments needs no more memory than one.
Documented in docs/manifest.md.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

MANIFEST_VERSION = 1


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One segment: its source range in characters, its place in its file in samples."""

    index: int
    part: int
    kind: str
    state: str
    start: int
    end: int
    start_sample: int | None
    end_sample: int | None
    pause_after_s: float
    take: int
    attempts: int
    audio_sha256: str | None


@dataclass(frozen=True, slots=True)
class Omission:
    """A stretch of source that is not heard, and why: a skip by choice, or a gap by failure."""

    index: int
    part: int
    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Substitution:
    """A stretch of source that the job's fallback engine spoke, since its own gave it up."""

    index: int
    part: int
    start: int
    end: int
    engine: str


def manifest_json(
    *,
    job: Mapping[str, object],
    files: Iterable[Mapping[str, object]],
    segments: Iterable[SegmentEntry],
    skips: Iterable[Omission],
    gaps: Iterable[Omission],
    fallbacks: Iterable[Substitution] = (),
) -> Iterator[bytes]:
    """The manifest's bytes, piece by piece. Iterables are read once, in the order given here."""
    yield b"{"
    yield b'"manifest_version": ' + _json(MANIFEST_VERSION)
    yield b',\n"job": ' + _json(job)
    yield from _array("files", files)
    yield from _array("skips", map(asdict, skips))
    yield from _array("gaps", map(asdict, gaps))
    yield from _array("fallbacks", map(asdict, fallbacks))
    yield from _array("segments", map(asdict, segments))
    yield b"\n}\n"


def _array(name: str, items: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    yield b",\n" + _json(name) + b": ["
    for position, item in enumerate(items):
        yield (b",\n  " if position else b"\n  ") + _json(item)
    yield b"\n]"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
