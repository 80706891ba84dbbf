"""A tenant's jobs in the whole order of their turns; a paused job has no head."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WAITING = sa.text("state = 'rendering' AND head_due_at IS NOT NULL")


def upgrade() -> None:
    op.execute("UPDATE job SET head_due_at = NULL WHERE paused_at IS NOT NULL")
    _order_turns(["tier", "tenant", "turn_s", "head_due_at", "id"])


def downgrade() -> None:
    _order_turns(["tier", "tenant", "turn_s"])
    op.execute(
        "UPDATE job SET head_due_at = (SELECT min(due_at) FROM segment"
        " WHERE segment.job_id = job.id AND segment.state = 'pending') WHERE paused_at IS NOT NULL"
    )


def _order_turns(columns: list[str]) -> None:
    op.drop_index("ix_job_turn", table_name="job")
    op.create_index(
        "ix_job_turn",
        "job",
        columns,
        unique=False,
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )
