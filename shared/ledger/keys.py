"""API keys in the ledger: digests, tenants, limits. Knows no key's text and no HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, update

from shared.errors import NotFoundError
from shared.ledger import tables as t
from shared.ledger.clock import db_now
from shared.tenants import Quota
from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as stored. Its quota bounds what its whole tenant has waiting when it is used."""

    id: str
    tenant: str
    name: str
    sha256: str
    tiers: frozenset[Tier]
    quota: Quota
    created_at: float
    revoked_at: float | None


def create(
    conn: Connection,
    key_id: str,
    sha256: str,
    *,
    tenant: str,
    name: str = "",
    tiers: Sequence[Tier] = tuple(Tier),
    quota: Quota,
) -> None:
    """Record a key by the digest of its text."""
    conn.execute(
        t.api_key.insert().values(
            id=key_id,
            tenant=tenant,
            name=name,
            sha256=sha256,
            tiers=[tier.value for tier in Tier if tier in tiers],
            quota_audio_s=quota.audio_s,
            quota_jobs=quota.jobs,
            created_at=db_now(),
        )
    )


def listed(conn: Connection, *, revoked: bool = False) -> list[KeyRecord]:
    """Keys in the order of their making: those that count, or with `revoked` all."""
    query = select(t.api_key).order_by(t.api_key.c.created_at, t.api_key.c.id)
    if not revoked:
        query = query.where(t.api_key.c.revoked_at.is_(None))
    return [
        KeyRecord(
            id=row.id,
            tenant=row.tenant,
            name=row.name,
            sha256=row.sha256,
            tiers=frozenset(Tier(word) for word in row.tiers),
            quota=Quota(audio_s=row.quota_audio_s, jobs=row.quota_jobs),
            created_at=row.created_at,
            revoked_at=row.revoked_at,
        )
        for row in conn.execute(query)
    ]


def ever_created(conn: Connection) -> bool:
    """True once a key has been made, revoked since or not: then nobody is served without one."""
    return bool(conn.execute(select(func.count()).select_from(t.api_key)).scalar_one())


def revoke(conn: Connection, key_id: str) -> bool:
    """End a key for good. False: it had been revoked before. Raises NotFoundError."""
    ended = conn.execute(
        update(t.api_key)
        .where(t.api_key.c.id == key_id, t.api_key.c.revoked_at.is_(None))
        .values(revoked_at=db_now())
    )
    if ended.rowcount == 1:
        return True
    known = conn.execute(select(t.api_key.c.id).where(t.api_key.c.id == key_id)).one_or_none()
    if known is None:
        raise NotFoundError("there is no such key; see: voxfarm keys list", code="key-not-found")
    return False
