"""Rounds of a job: how often, and when, it was taken up again after its end."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "job",
        sa.Column(
            "round",
            sa.Integer(),
            nullable=False,
            server_default="0",
            comment="how often it was tried again",
        ),
    )
    op.add_column("job", sa.Column("retried_at", sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    op.drop_column("job", "retried_at")
    op.drop_column("job", "round")
