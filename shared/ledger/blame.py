"""What is held against a segment: crashes alone, and the suspicion of being their cause.

Evidence outlives the lease. An engine that hangs shows no progress, so the lease of the sentence
that hangs it has always run out before its host is given up; were only the holder of the newest
token believed, such a sentence would go from node to node for ever.
"""

from dataclasses import dataclass

from sqlalchemy import Boolean, Connection, String, bindparam, or_, update

from shared.ledger import tables as t
from shared.ledger.segments import JOB_RENDERS, THE_SEGMENT
from shared.segments import SegmentState

_c = t.segment.c
_TESTIFY = (
    update(t.segment)
    .where(
        THE_SEGMENT,
        # of the engine that speaks it now, not of the one that gave it up before
        _c.content_key == bindparam("the_content", type_=String),
        _c.state.in_((SegmentState.PENDING, SegmentState.DISPATCHED, SegmentState.LEASED)),
        JOB_RENDERS,
    )
    .values(
        crashes=_c.crashes + bindparam("the_crashes"),
        suspect=or_(_c.suspect, bindparam("the_suspicion", type_=Boolean)),
    )
    .returning(_c.crashes, _c.token)
)


@dataclass(frozen=True, slots=True)
class Blame:
    """How often a segment has crashed alone, and its newest token."""

    crashes: int
    token: int


def testify(
    conn: Connection, job_id: str, index: int, content_key: str, *, crashed: bool, suspect: bool
) -> Blame | None:
    """Record what an engine did under a segment, whoever holds it now; once for every claim.

    `crashed` counts a crash alone; a `suspect` runs alone from now on. None: it was settled
    meanwhile, or is another engine's.
    """
    row = conn.execute(
        _TESTIFY,
        {
            "the_job": job_id,
            "the_index": index,
            "the_content": content_key,
            "the_crashes": int(crashed),
            "the_suspicion": suspect,
        },
    ).one_or_none()
    return None if row is None else Blame(row.crashes, row.token)
