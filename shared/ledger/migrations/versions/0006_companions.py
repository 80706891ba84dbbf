"""Several segments' audio in one object: where in it each lies."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("offset_bytes", "size_bytes"):
        op.add_column(
            "segment", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")
        )
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("segment", "object_key", comment="may hold the audio of several segments")
        op.alter_column("segment", "sha256", comment="of the bytes of this segment alone")


def downgrade() -> None:
    op.drop_column("segment", "size_bytes")
    op.drop_column("segment", "offset_bytes")
