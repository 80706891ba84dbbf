"""API keys; what the door asks: expected audio of jobs, live jobs by tenant, recent renderings."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ALIVE = sa.text("ended_at IS NULL")
_SPOKEN = sa.text("state = 'done' AND samples > 0")


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("tiers", sa.JSON(), nullable=False, comment="list of tiers that jobs may have"),
        sa.Column(
            "quota_audio_s",
            sa.Float(precision=53),
            nullable=True,
            comment="audio still to be made; null: no limit",
        ),
        sa.Column("quota_jobs", sa.Integer(), nullable=True, comment="jobs alive; null: no limit"),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("revoked_at", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
    )
    op.add_column(
        "job",
        sa.Column("expected_audio_s", sa.Float(precision=53), nullable=False, server_default="0"),
    )
    # Of jobs accepted before, only those alive matter; 15 characters are about a second of speech.
    op.execute("UPDATE job SET expected_audio_s = characters / 15.0 WHERE ended_at IS NULL")
    op.create_index(
        "ix_job_alive_tenant",
        "job",
        ["tenant"],
        unique=False,
        sqlite_where=_ALIVE,
        postgresql_where=_ALIVE,
    )
    op.create_index(
        "ix_segment_spoken",
        "segment",
        ["tier", "done_at"],
        unique=False,
        sqlite_where=_SPOKEN,
        postgresql_where=_SPOKEN,
    )


def downgrade() -> None:
    op.drop_index("ix_segment_spoken", table_name="segment")
    op.drop_index("ix_job_alive_tenant", table_name="job")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_column("expected_audio_s")
    op.drop_table("api_key")
