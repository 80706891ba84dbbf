"""Segments that wait for audio which another job of the tenant is having made just now.

A follower waits for one lease of its leader, not for its renewal: at worst it is spoken itself, as
if it had not waited. When it is claimed it looks for the audio first (`taking_over`).
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, String, bindparam, exists, select, tuple_, update

from shared.jobs import JobState
from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.ledger.renderings import FIRST_TAKE
from shared.segments import SegmentState
from shared.tiers import Tier

_c = t.segment.c
_AS_FAST = {
    Tier.RUSH: (Tier.RUSH,),
    Tier.STANDARD: (Tier.RUSH, Tier.STANDARD),
    Tier.BULK: (Tier.RUSH, Tier.STANDARD, Tier.BULK),
}


def leaders(
    conn: Connection, tenant: str, tier: Tier, content_keys: Collection[str]
) -> Mapping[str, float]:
    """Until when these contents are leased by jobs of the tenant (epoch seconds), where they are.

    Nobody follows a slower tier. Leases are as few as the engines have slots, whatever waits.
    """
    wanted = frozenset(content_keys)
    rows = conn.execute(
        select(_c.content_key, _c.lease_until)
        .join_from(t.segment, t.job, t.job.c.id == _c.job_id)
        .where(
            t.IS_IN_FLIGHT,
            _c.tier.in_(_AS_FAST[tier]),
            _c.state == SegmentState.LEASED,
            _c.lease_until > db_now(),
            _c.take == FIRST_TAKE,
            t.job.c.tenant == tenant,
            t.job.c.state == JobState.RENDERING,
            t.job.c.paused.is_(False),
        )
        .order_by(_c.lease_until)
    )
    return {row.content_key: row.lease_until for row in rows if row.content_key in wanted}


_KEYS = bindparam("the_keys", type_=String, expanding=True)
_WAITING = (
    select(_c.job_id, _c.index)
    .where(
        t.IS_FOLLOWER,
        _c.content_key.in_(_KEYS),
        _c.not_before > db_now(),
        exists().where(
            t.job.c.id == _c.job_id, t.job.c.tenant == bindparam("the_tenant", type_=String)
        ),
    )
    .order_by(_c.job_id, _c.index)  # locks are taken in one order
    .with_for_update(of=t.segment)
)


def wake(conn: Connection, tenant: str, content_keys: Collection[str]) -> None:
    """Let those who wait for these contents be sent at once: their audio is there."""
    found = conn.execute(_WAITING, {"the_keys": sorted(content_keys), "the_tenant": tenant}).all()
    if found:
        followers = [(row[0], row[1]) for row in found]
        conn.execute(
            update(t.segment)
            .where(tuple_(_c.job_id, _c.index).in_(followers), t.IS_FOLLOWER)
            .values(not_before=db_now())
        )
