"""Whose turn it is: waiting heads and turns of jobs, shares of tenants, what a pool remembers."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_WAITING = sa.text("state = 'rendering' AND head_due_at IS NOT NULL")
_PENDING = sa.text("state = 'pending'")


def upgrade() -> None:
    op.add_column(
        "job",
        sa.Column(
            "head_due_at",
            sa.Float(precision=53),
            nullable=True,
            comment="due time of the first waiting segment, if any waits",
        ),
    )
    op.add_column(
        "job", sa.Column("turn_s", sa.Float(precision=53), nullable=False, server_default="0")
    )
    op.create_table(
        "tenant_share",
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("turn_s", sa.Float(precision=53), nullable=False),
        sa.Column("clock_s", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("tier", "tenant", name=op.f("pk_tenant_share")),
    )
    op.create_table(
        "pool",
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_pool")),
    )
    _index("ix_job_head", "job", ["tier", "head_due_at", "id"], _WAITING)
    _index("ix_job_end", "job", ["tier", "due_at", "id"], _WAITING)
    _index("ix_job_turn", "job", ["tier", "tenant", "turn_s"], _WAITING)
    _index("ix_segment_heads", "segment", ["job_id", "due_at", "index"], _PENDING)
    op.execute(
        "UPDATE job SET head_due_at = (SELECT min(due_at) FROM segment"
        " WHERE segment.job_id = job.id AND segment.state = 'pending') WHERE ended_at IS NULL"
    )


def downgrade() -> None:
    op.drop_index("ix_segment_heads", table_name="segment")
    for name in ("ix_job_turn", "ix_job_end", "ix_job_head"):
        op.drop_index(name, table_name="job")
    op.drop_table("pool")
    op.drop_table("tenant_share")
    op.drop_column("job", "turn_s")
    op.drop_column("job", "head_due_at")


def _index(name: str, table: str, columns: list[str], where: sa.TextClause) -> None:
    op.create_index(name, table, columns, unique=False, sqlite_where=where, postgresql_where=where)
