"""Leases that nobody gave back: what they say about the sentence or the step that was held."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_ABANDONED = "leases in a row that ran out without another word of their holder"


def upgrade() -> None:
    _add("segment", "abandoned", _ABANDONED)
    _add("segment", "alone_token", "the claim under which nothing else runs in its consumer")
    _add(
        "segment",
        "blamed_token",
        "the newest claim that counts as a crash: each counts once",
    )
    _add("step", "abandoned", _ABANDONED)


def _add(table: str, column: str, comment: str) -> None:
    op.add_column(
        table,
        sa.Column(column, sa.Integer(), nullable=False, server_default="0", comment=comment),
    )


def downgrade() -> None:
    op.drop_column("step", "abandoned")
    op.drop_column("segment", "blamed_token")
    op.drop_column("segment", "alone_token")
    op.drop_column("segment", "abandoned")
