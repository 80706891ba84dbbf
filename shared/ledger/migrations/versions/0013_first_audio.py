"""When a job's first audio is due, so that this promise can be judged like its completion."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "job",
        sa.Column(
            "first_due_at",
            sa.Float(precision=53),
            nullable=True,
            comment="target of its first audio",
        ),
    )
    heard = sa.text("started_at IS NOT NULL AND first_due_at IS NOT NULL")
    op.create_index(
        "ix_job_heard",
        "job",
        ["tier", "started_at", "first_due_at"],
        sqlite_where=heard,
        postgresql_where=heard,
    )
    unheard = sa.text("started_at IS NULL AND first_due_at IS NOT NULL")
    op.create_index(
        "ix_job_unheard",
        "job",
        ["tier", "first_due_at", "state", "paused_at"],
        sqlite_where=unheard,
        postgresql_where=unheard,
    )


def downgrade() -> None:
    op.drop_index("ix_job_unheard", "job")
    op.drop_index("ix_job_heard", "job")
    op.drop_column("job", "first_due_at")
