"""What has been asked of the farm and is not done: live jobs, and what each tenant has waiting.

Knows rows; what follows from them is decided by whoever asks.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, ScalarSelect, case, func, select, text

from shared.ledger import tables as t
from shared.tenants import TenantBacklog
from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job that has not ended. `done` is the share of its characters that is spoken, 0 to 1."""

    tier: Tier
    created_at: float
    due_at: float
    audio_s: float
    done: float


def live_jobs(conn: Connection) -> list[LiveJob]:
    """Every job that is alive and not paused."""
    c = t.job.c
    rows = conn.execute(
        select(c.tier, c.created_at, c.due_at, c.expected_audio_s, _DONE.label("done")).where(
            c.ended_at.is_(None), c.paused.is_(False)
        )
    )
    return [
        LiveJob(Tier(row.tier), row.created_at, row.due_at, row.expected_audio_s, float(row.done))
        for row in rows
    ]


def lock_tenant(conn: Connection, tenant: str) -> None:
    """Hold a tenant's door until the transaction ends, so that a quota is checked and used up once.

    SQLite's immediate transactions already exclude every other writer.
    """
    if conn.dialect.name == "postgresql":
        conn.execute(
            text("SELECT pg_advisory_xact_lock(hashtext(:key))"), {"key": f"door:{tenant}"}
        )


def tenant_backlog(conn: Connection, tenant: str) -> TenantBacklog:
    """What a tenant has waiting, paused jobs included."""
    c = t.job.c
    row = conn.execute(
        select(
            func.count().label("jobs"),
            func.coalesce(func.sum(c.expected_audio_s * (1.0 - _DONE)), 0.0).label("audio_s"),
        ).where(c.ended_at.is_(None), c.tenant == tenant)
    ).one()
    return TenantBacklog(audio_s=float(row.audio_s), jobs=row.jobs)


def _part_sum(column: ColumnElement[int]) -> ScalarSelect[int]:
    return (
        select(func.coalesce(func.sum(column), 0))
        .where(t.part.c.job_id == t.job.c.id)
        .correlate(t.job)
        .scalar_subquery()
    )


_TOTAL = _part_sum(t.part.c.chars_total)
_DONE = case((_TOTAL > 0, 1.0 * _part_sum(t.part.c.chars_done) / _TOTAL), else_=0.0)
