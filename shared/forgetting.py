"""Forgetting an expired job's segments, in transactions short enough to hold nobody up."""

from shared.ledger import expiry
from shared.ledger.database import Database

AT_ONCE = 1_000  # rows a transaction


def forget(database: Database, job_id: str, *, reuse_s: float) -> None:
    """Forget text and audio of every segment. Whoever dies half way leaves the rest to others."""
    after: int | None = -1
    while after is not None:
        after = database.transact(
            lambda conn, a=after: expiry.forget_some(  # type: ignore[misc]
                conn, job_id, after=a, reuse_s=reuse_s, limit=AT_ONCE
            )
        )
