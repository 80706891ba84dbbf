"""Audio that jobs share: stored objects with their references, renderings, files; and retention."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_SPOKEN = "state = 'done' AND samples > 0"
_KEPT = "state IN ('completed', 'partial', 'failed', 'cancelled')"
_INDEXES_OF_JOBS = (
    ("ix_job_kept", "expires_at", _KEPT),
    ("ix_job_expired", "id", "state = 'expired' AND forgotten_at IS NULL"),
    ("ix_job_unswept", "unswept_since", "unswept_since IS NOT NULL"),
)


def upgrade() -> None:
    _add_columns_of_jobs()
    _create_tables()
    for name, column, where in _INDEXES_OF_JOBS:
        _index(name, "job", [column], where)
    op.drop_index("ix_segment_spoken", "segment")
    _index(
        "ix_segment_spoken",
        "segment",
        ["tier", "done_at"],
        f"{_SPOKEN} AND claimed_at IS NOT NULL",
    )
    _adopt_what_is_there()


def downgrade() -> None:
    op.drop_index("ix_segment_spoken", "segment")
    _index("ix_segment_spoken", "segment", ["tier", "done_at"], _SPOKEN)
    for name, _column, _where in _INDEXES_OF_JOBS:
        op.drop_index(name, "job")
    for table in ("encoding", "rendering", "stored_object"):
        op.drop_table(table)
    for column in (
        "unswept_since",
        "forgotten_at",
        "deleted_at",
        "expires_at",
        "retention_s",
        "parts_reused",
        "segments_reused",
    ):
        op.drop_column("job", column)


def _add_columns_of_jobs() -> None:
    for name in ("segments_reused", "parts_reused"):
        op.add_column("job", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column(
        "job",
        sa.Column("retention_s", sa.Float(precision=53), nullable=False, server_default="604800"),
    )
    for name, comment in (
        ("expires_at", "set when it ends"),
        ("deleted_at", "when its owner asked for its audio to go at once"),
        ("forgotten_at", "when text and references had gone, after expiry"),
        ("unswept_since", "nothing of it can count any more since then"),
    ):
        op.add_column(
            "job", sa.Column(name, sa.Float(precision=53), nullable=True, comment=comment)
        )


def _create_tables() -> None:
    op.create_table(
        "stored_object",
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column(
            "job_id",
            sa.String(length=26),
            nullable=False,
            comment="that stored it; others may refer to it too",
        ),
        sa.Column(
            "refs",
            sa.Integer(),
            nullable=False,
            comment="segments and deliverables that point to it",
        ),
        sa.Column(
            "condemned_at",
            sa.Float(precision=53),
            nullable=True,
            comment="nobody needs it from then on; null: referred to",
        ),
        sa.Column(
            "doomed_at",
            sa.Float(precision=53),
            nullable=True,
            comment="being deleted: no reference may be added any more",
        ),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_stored_object")),
    )
    _index(
        "ix_stored_object_condemned",
        "stored_object",
        ["condemned_at"],
        "condemned_at IS NOT NULL",
    )
    op.create_index("ix_stored_object_job_id", "stored_object", ["job_id"], unique=False)
    op.create_table(
        "rendering",
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("content_key", sa.String(length=64), nullable=False),
        sa.Column("take", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("object_key", sa.String(length=255), nullable=False),
        sa.Column("offset_bytes", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("rate_hz", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["object_key"],
            ["stored_object.key"],
            name=op.f("fk_rendering_object_key"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "content_key", "take", name=op.f("pk_rendering")),
        comment="the newest audio of each content, for other jobs to reuse",
    )
    op.create_index("ix_rendering_object_key", "rendering", ["object_key"], unique=False)
    op.create_table(
        "encoding",
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("part_key", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.String(length=255), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("rate_hz", sa.Integer(), nullable=False),
        sa.Column(
            "timeline",
            sa.JSON(),
            nullable=False,
            comment="[[segment index within the part, start sample, end sample], ...]",
        ),
        sa.ForeignKeyConstraint(
            ["object_key"],
            ["stored_object.key"],
            name=op.f("fk_encoding_object_key"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "part_key", name=op.f("pk_encoding")),
        comment="the newest file of each assembled part, for other jobs to reuse",
    )
    op.create_index("ix_encoding_object_key", "encoding", ["object_key"], unique=False)


def _adopt_what_is_there() -> None:
    """Count the references of objects from before, and let their jobs expire too.

    Jobs that have ended keep their files for the default time from now on, not from then: nobody
    was told that they would go.
    """
    op.execute(
        "INSERT INTO stored_object (key, tenant, job_id, refs, created_at)"
        " SELECT held.object_key, min(job.tenant), min(job.id), count(*), min(job.created_at)"
        " FROM (SELECT job_id, object_key FROM segment WHERE object_key IS NOT NULL"
        " UNION ALL SELECT job_id, object_key FROM deliverable) AS held"
        " JOIN job ON job.id = held.job_id GROUP BY held.object_key"
    )
    now = (
        "extract(epoch from clock_timestamp())"
        if op.get_bind().dialect.name == "postgresql"
        else "(julianday('now') - 2440587.5) * 86400.0"
    )
    op.execute(f"UPDATE job SET expires_at = {now} + 604800 WHERE {_KEPT}")  # noqa: S608
    op.execute("UPDATE job SET unswept_since = ended_at WHERE state IN ('completed', 'cancelled')")


def _index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(
        name,
        table,
        columns,
        unique=False,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )
