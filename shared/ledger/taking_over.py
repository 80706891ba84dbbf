"""A claimed segment that finds its audio made meanwhile takes it, and no engine speaks it.

It is then as if its plan had found the audio: counted as reused, and no rate is read from it.
"""

from sqlalchemy import Connection, and_, null, select, update

from shared.ledger import renderings, settling
from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.ledger.offers import refresh_heads
from shared.ledger.renderings import Audio
from shared.ledger.segments import IS_UNSETTLED, JOB, JOB_RENDERS, THE_SEGMENT, TOKEN, Claim
from shared.ledger.settling import Committed, Tally
from shared.segments import SegmentState

_c = t.segment.c
_MINE = (
    select(
        _c.part,
        _c.chars,
        (_c.state == SegmentState.DONE).label("is_done"),
        (_c.state == SegmentState.PENDING).label("waits"),
        and_(IS_UNSETTLED, JOB_RENDERS).label("is_open"),
    )
    .where(THE_SEGMENT, _c.token == TOKEN)
    .with_for_update(of=t.segment)
)
_TAKE = (
    update(t.segment)
    .where(THE_SEGMENT, _c.token == TOKEN)  # locked, and looked at
    .values(
        state=SegmentState.DONE,
        done_at=db_now(),
        claimed_at=null(),
        lease_until=None,
        error=None,
    )
)
_COUNT = update(t.job).where(t.job.c.id == JOB).values(segments_reused=t.job.c.segments_reused + 1)


def take_over(conn: Connection, claim: Claim) -> Committed | None:
    """Commit a claimed segment with audio that its tenant has already. None: there is none.

    Locks are taken in the order of a commit. A repeated call reports success and counts once.
    """
    where = {"the_job": claim.job_id, "the_index": claim.index, "the_token": claim.token}
    mine = conn.execute(_MINE, where).one_or_none()
    if mine is None or not mine.is_open:
        return Committed(won=mine is not None and mine.is_done)
    if claim.take != renderings.FIRST_TAKE:
        return None
    found = renderings.reuse(conn, claim.tenant, claim.job_id, [claim.content_key])
    audio = found.get(claim.content_key)
    if audio is None:
        return None
    columns = {name: getattr(audio, name) for name in Audio.__slots__}
    conn.execute(_TAKE.values(columns), where)
    tally = Tally()
    tally.add(claim.index, chars=mine.chars, audio_s=audio.samples / audio.rate_hz)
    ready = settling.settle(conn, claim.job_id, {mine.part: tally})
    conn.execute(_COUNT, where)
    if mine.waits:  # its lease had run out
        refresh_heads(conn, [claim.job_id])
    return Committed(won=True, step_id=ready.get(claim.index))
