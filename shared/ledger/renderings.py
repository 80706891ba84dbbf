"""Renderings that other jobs of the tenant may reuse: the newest audio of each content key.

A rendering outlives the job that made it, for as long as its object does. Knows nothing of what a
content key is made of.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select

from shared.ledger import objects
from shared.ledger import tables as t
from shared.ledger.upsert import upserts

FIRST_TAKE = 0


@dataclass(frozen=True, slots=True)
class Audio:
    """Where a rendering lies, and what it is. `samples` per channel, mono, at `rate_hz`.

    An object may hold several renderings, one after the other: this one is its `size_bytes` bytes
    from `offset_bytes`, and `sha256` is theirs alone.
    """

    object_key: str
    offset_bytes: int
    size_bytes: int
    sha256: str
    samples: int
    rate_hz: int


_r = t.rendering.c
_AUDIO = tuple(Audio.__slots__)


_RECORD = upserts(t.rendering, ("tenant", "content_key", "take"))


def record(conn: Connection, tenant: str, made: Mapping[tuple[str, int], Audio]) -> None:
    """Note renderings by (content key, take). The newest counts; its object is known already."""
    rows = [
        {"tenant": tenant, "content_key": key, "take": take}
        | {name: getattr(made[key, take], name) for name in _AUDIO}
        for key, take in sorted(made)  # locks are taken in one order
        if key
    ]
    if rows:
        conn.execute(_RECORD[conn.dialect.name], rows)


def reuse(
    conn: Connection, tenant: str, job_id: str, content_keys: Sequence[str]
) -> dict[str, Audio]:
    """The first takes of these contents that are there, held for the job: once for each mention.

    What is being deleted counts as not there.
    """
    wanted = Counter(content_keys)
    found = _find(conn, tenant, list(wanted))
    usable = objects.lock_usable(conn, {audio.object_key for audio in found.values()})
    held = {key: audio for key, audio in found.items() if audio.object_key in usable}
    counts = Counter[str]()
    for key, audio in held.items():
        counts[audio.object_key] += wanted[key]
    objects.refer(conn, tenant, job_id, counts)
    return held


def known(conn: Connection, tenant: str, content_keys: Sequence[str]) -> frozenset[str]:
    """Which of these contents could be reused now; holds nothing."""
    return frozenset(_find(conn, tenant, sorted(set(content_keys))))


@dataclass(frozen=True, slots=True)
class Reused:
    """How much of what all jobs needed was there already."""

    segments: int
    segments_planned: int
    parts: int


def reused(conn: Connection) -> Reused:
    """Over all jobs on record, for metrics."""
    c = t.job.c
    sums = [
        func.coalesce(func.sum(column), 0)
        for column in (c.segments_reused, c.segments_total, c.parts_reused)
    ]
    return Reused(*(int(value) for value in conn.execute(select(*sums)).one()))


def distrust(conn: Connection, object_keys: Collection[str]) -> None:
    """Let nobody reuse what objects are said to hold: the store has lost or damaged them."""
    for start in range(0, len(object_keys), _AT_ONCE):
        keys = sorted(object_keys)[start : start + _AT_ONCE]
        conn.execute(
            select(_r.content_key)
            .where(_r.object_key.in_(keys))
            .order_by(_r.tenant, _r.content_key, _r.take)  # locks are taken in one order
            .with_for_update()
        )
        conn.execute(delete(t.rendering).where(_r.object_key.in_(keys)))
        conn.execute(delete(t.encoding).where(t.encoding.c.object_key.in_(keys)))


def _find(conn: Connection, tenant: str, content_keys: Sequence[str]) -> dict[str, Audio]:
    found = dict[str, Audio]()
    for start in range(0, len(content_keys), _AT_ONCE):
        rows = conn.execute(
            select(_r.content_key, *(_r[name] for name in _AUDIO)).where(
                _r.tenant == tenant,
                _r.content_key.in_(content_keys[start : start + _AT_ONCE]),
                _r.take == FIRST_TAKE,
            )
        )
        found |= {row.content_key: Audio(*row[1:]) for row in rows}
    return found


_AT_ONCE = 1_000
