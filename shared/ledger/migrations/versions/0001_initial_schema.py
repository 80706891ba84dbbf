"""Create the ledger: jobs, parts, segments, steps, deliverables, nodes, outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "engine",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("info", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_engine")),
    )
    op.create_table(
        "idempotency",
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request_sha256", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("pk_idempotency")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("characters", sa.Integer(), nullable=False),
        sa.Column("segments_total", sa.Integer(), nullable=False),
        sa.Column("segments_skipped", sa.Integer(), nullable=False),
        sa.Column("parts_total", sa.Integer(), nullable=False),
        sa.Column("parts_rendering", sa.Integer(), nullable=False),
        sa.Column("parts_remaining", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("due_at", sa.Float(precision=53), nullable=False),
        sa.Column("planned_at", sa.Float(precision=53), nullable=True),
        sa.Column("started_at", sa.Float(precision=53), nullable=True),
        sa.Column("rendered_at", sa.Float(precision=53), nullable=True),
        sa.Column("ended_at", sa.Float(precision=53), nullable=True),
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.create_index(
            "ix_job_alive",
            ["created_at"],
            unique=False,
            sqlite_where=sa.text("ended_at IS NULL"),
            postgresql_where=sa.text("ended_at IS NULL"),
        )
        batch_op.create_index("ix_job_tenant_id", ["tenant", "id"], unique=False)

    op.create_table(
        "node",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("engine", sa.String(length=64), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("heartbeat_at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", "engine", name=op.f("pk_node")),
    )
    op.create_table(
        "deliverable",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("content_type", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.String(length=255), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("rate_hz", sa.Integer(), nullable=False),
        sa.Column(
            "timeline",
            sa.JSON(),
            nullable=True,
            comment="[[segment index, start sample, end sample], ...]",
        ),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_deliverable_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "part", "kind", name=op.f("pk_deliverable")),
    )
    op.create_table(
        "job_text",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "chapters", sa.Text(), nullable=False, comment="JSON list of [title, start, end]"
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_job_text_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_job_text")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_outbox_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("job_id", "type", "round", name=op.f("uq_outbox_job_id_type_round")),
    )
    op.create_table(
        "part",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("segments_total", sa.Integer(), nullable=False),
        sa.Column("remaining", sa.Integer(), nullable=False),
        sa.Column("quarantined", sa.Integer(), nullable=False),
        sa.Column("chars_total", sa.Integer(), nullable=False),
        sa.Column("chars_done", sa.Integer(), nullable=False),
        sa.Column("audio_s", sa.Float(precision=53), nullable=False),
        sa.Column("assembled", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_part_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "index", name=op.f("pk_part")),
    )
    op.create_table(
        "segment",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("pause_after_s", sa.Float(precision=53), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=False),
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("chars", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Float(precision=53), nullable=False),
        sa.Column("content_key", sa.String(length=64), nullable=False),
        sa.Column("take", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("dispatch_no", sa.Integer(), nullable=False),
        sa.Column("dispatched_at", sa.Float(precision=53), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("suspect", sa.Boolean(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Float(precision=53), nullable=True),
        sa.Column("not_before", sa.Float(precision=53), nullable=False),
        sa.Column("claimed_at", sa.Float(precision=53), nullable=True),
        sa.Column("done_at", sa.Float(precision=53), nullable=True),
        sa.Column("object_key", sa.String(length=255), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("rate_hz", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_segment_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "index", name=op.f("pk_segment")),
    )
    with op.batch_alter_table("segment", schema=None) as batch_op:
        batch_op.create_index(
            "ix_segment_in_flight",
            ["tier", "state", "lease_until"],
            unique=False,
            sqlite_where=sa.text("state IN ('dispatched', 'leased')"),
            postgresql_where=sa.text("state IN ('dispatched', 'leased')"),
        )
        batch_op.create_index("ix_segment_part", ["job_id", "part", "index"], unique=False)
        batch_op.create_index(
            "ix_segment_pending",
            ["tier", "due_at", "job_id", "index"],
            unique=False,
            sqlite_where=sa.text("state = 'pending'"),
            postgresql_where=sa.text("state = 'pending'"),
        )

    op.create_table(
        "step",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("dispatch_no", sa.Integer(), nullable=False),
        sa.Column("dispatched_at", sa.Float(precision=53), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Float(precision=53), nullable=True),
        sa.Column("not_before", sa.Float(precision=53), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("done_at", sa.Float(precision=53), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["job.id"], name=op.f("fk_step_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step")),
        sa.UniqueConstraint(
            "job_id", "kind", "part", "round", name=op.f("uq_step_job_id_kind_part_round")
        ),
    )
    with op.batch_alter_table("step", schema=None) as batch_op:
        batch_op.create_index(
            "ix_step_open",
            ["kind", "created_at"],
            unique=False,
            sqlite_where=sa.text("state IN ('pending', 'dispatched', 'leased')"),
            postgresql_where=sa.text("state IN ('pending', 'dispatched', 'leased')"),
        )


def downgrade() -> None:
    with op.batch_alter_table("step", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_step_open",
            sqlite_where=sa.text("state IN ('pending', 'dispatched', 'leased')"),
            postgresql_where=sa.text("state IN ('pending', 'dispatched', 'leased')"),
        )

    op.drop_table("step")
    with op.batch_alter_table("segment", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_segment_pending",
            sqlite_where=sa.text("state = 'pending'"),
            postgresql_where=sa.text("state = 'pending'"),
        )
        batch_op.drop_index("ix_segment_part")
        batch_op.drop_index(
            "ix_segment_in_flight",
            sqlite_where=sa.text("state IN ('dispatched', 'leased')"),
            postgresql_where=sa.text("state IN ('dispatched', 'leased')"),
        )

    op.drop_table("segment")
    op.drop_table("part")
    op.drop_table("outbox")
    op.drop_table("job_text")
    op.drop_table("deliverable")
    op.drop_table("node")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index("ix_job_tenant_id")
        batch_op.drop_index(
            "ix_job_alive",
            sqlite_where=sa.text("ended_at IS NULL"),
            postgresql_where=sa.text("ended_at IS NULL"),
        )

    op.drop_table("job")
    op.drop_table("idempotency")
    op.drop_table("engine")
