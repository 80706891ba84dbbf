"""What promises are read from: marks of progress, pauses, and indexes over backlog and past."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WAITING = "state IN ('accepted', 'planning', 'rendering')"
SETTLED = "state IN ('completed', 'partial', 'failed')"


def upgrade() -> None:
    op.add_column("job", sa.Column("paused_at", sa.Float(precision=53), nullable=True))
    op.add_column(
        "part",
        sa.Column(
            "marked_at",
            sa.Float(precision=53),
            nullable=True,
            comment="when this part last left a mark",
        ),
    )
    op.create_table(
        "mark",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column(
            "chars", sa.Integer(), nullable=False, comment="of the whole job, settled by then"
        ),
        sa.Column("segments", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_mark_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "part", "at", name=op.f("pk_mark")),
        comment="how far a job was every few seconds: what its recent rate is read from",
    )
    _index(
        "ix_job_waiting",
        "job",
        ["tier", "state", "paused_at", "created_at", "characters"],
        WAITING,
    )
    _index("ix_job_waiting_due", "job", ["tier", "due_at", "id", "paused_at"], WAITING)
    _index("ix_job_settled", "job", ["tier", "ended_at", "due_at", "state"], SETTLED)
    _index("ix_job_paused", "job", ["id"], "paused_at IS NOT NULL")


def downgrade() -> None:
    for name in ("ix_job_paused", "ix_job_settled", "ix_job_waiting_due", "ix_job_waiting"):
        op.drop_index(name, "job")
    op.drop_table("mark")
    op.drop_column("part", "marked_at")
    op.drop_column("job", "paused_at")


def _index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(
        name,
        table,
        columns,
        unique=False,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )
