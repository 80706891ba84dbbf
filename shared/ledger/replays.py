"""Idempotency keys: which job a request made that was sent before. Knows no job's contents."""

from sqlalchemy import Connection, delete, select
from sqlalchemy.exc import IntegrityError

from shared.errors import ConflictError
from shared.ledger import tables as t
from shared.ledger.clock import read_clock

KEY_LIFE_S = 24 * 3_600.0


def find(conn: Connection, tenant: str, key: str, request_sha256: str) -> str | None:
    """The id of the job that an equal request made of late, or None.

    Raises ConflictError "idempotency-key-reused" when it was an unequal one.
    """
    c = t.idempotency.c
    row = conn.execute(
        select(c.job_id, c.request_sha256).where(
            c.tenant == tenant, c.key == key, c.created_at >= read_clock(conn) - KEY_LIFE_S
        )
    ).one_or_none()
    if row is None:
        return None
    if row.request_sha256 != request_sha256:
        raise ConflictError(
            "this Idempotency-Key was used before with a different request body",
            code="idempotency-key-reused",
            job_id=row.job_id,
        )
    return str(row.job_id)


def remember(
    conn: Connection, tenant: str, key: str, request_sha256: str, *, job_id: str, now: float
) -> None:
    """Note which job a request makes. Raises IntegrityError in a race: see `is_race`."""
    c = t.idempotency.c
    conn.execute(
        delete(t.idempotency).where(
            c.tenant == tenant, c.key == key, c.created_at < now - KEY_LIFE_S
        )
    )
    conn.execute(
        t.idempotency.insert().values(
            tenant=tenant,
            key=key,
            request_sha256=request_sha256,
            job_id=job_id,
            created_at=now,
        )
    )


def is_race(error: IntegrityError) -> bool:
    """True when two submits with one key met: the loser should look again."""
    return "idempotency" in str(error.orig)


def forget_old(conn: Connection) -> int:
    """Delete keys past their life. Returns how many."""
    old = t.idempotency.c.created_at < read_clock(conn) - KEY_LIFE_S
    return conn.execute(delete(t.idempotency).where(old)).rowcount
