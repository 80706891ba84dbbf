"""Stored audio that the store lost: how often, of each segment."""

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


def downgrade() -> None:
    op.drop_column("segment", "losses")
