"""Reading segments, in order, for listings, assembly and the manifest."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from shared.ledger import tables as t
from shared.segments import SegmentKind, SegmentState


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """One segment as stored, for listing, assembly and the manifest."""

    index: int
    part: int
    kind: SegmentKind
    state: SegmentState
    start: int
    end: int
    pause_after_s: float
    reason: str
    take: int
    attempt: int
    token: int
    object_key: str | None
    offset_bytes: int
    size_bytes: int
    sha256: str | None
    samples: int
    rate_hz: int
    error: str | None
    fallback: bool
    losses: int


def page(
    conn: Connection, job_id: str, *, limit: int, after: int = -1, part: int | None = None
) -> list[SegmentRecord]:
    """Segments in order, after the given index, of one part or of all."""
    c = t.segment.c
    query = select(
        *(c[name] for name in SegmentRecord.__slots__),
    ).where(c.job_id == job_id, c.index > after)
    if part is not None:
        query = query.where(c.part == part)
    return [
        SegmentRecord(
            **{
                **row._asdict(),
                "kind": SegmentKind(row.kind),
                "state": SegmentState(row.state),
            }
        )
        for row in conn.execute(query.order_by(c.index).limit(limit))
    ]
