"""Stored audio that the store lost, and segments that wait for audio that another job makes."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "segment",
        sa.Column(
            "losses",
            sa.Integer(),
            nullable=False,
            server_default="0",
            comment="how often its stored audio was found gone or damaged",
        ),
    )

    op.add_column(
        "segment",
        sa.Column(
            "follows",
            sa.Boolean(),
            nullable=False,
            server_default=sa.false(),
            comment="its audio may be there by the time that it is claimed: look first",
        ),
    )
    condition = sa.text("state = 'pending' AND follows")
    op.create_index(
        "ix_segment_followers",
        "segment",
        ["content_key"],
        sqlite_where=condition,
        postgresql_where=condition,
    )


def downgrade() -> None:
    op.drop_index("ix_segment_followers", "segment")
    op.drop_column("segment", "follows")
    op.drop_column("segment", "losses")
