"""Webhooks, and the deliveries of what happens to them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ID = sa.String(length=26)
_TIME = sa.Float(precision=53)


def upgrade() -> None:
    op.add_column("job", sa.Column("webhook_id", _ID, comment="webhook that the job itself named"))
    op.add_column(
        "job",
        sa.Column("webhook_events", sa.JSON(), comment="list of events that this webhook is told"),
    )
    op.add_column(
        "job",
        sa.Column("progress_at", _TIME, comment="when the next progress event is due, if any is"),
    )
    _index("ix_job_progress", "job", ["progress_at"], "progress_at IS NOT NULL")
    with op.batch_alter_table("outbox") as outbox:
        outbox.alter_column(
            "job_id", existing_type=_ID, nullable=True, comment="null: a test event"
        )
        outbox.add_column(
            sa.Column(
                "data", sa.Text(), comment="JSON of what is told; null: nobody was to be told"
            )
        )
        outbox.add_column(
            sa.Column(
                "body",
                sa.Text(),
                comment="what is sent, the same at every try; null before the first",
            )
        )
    op.create_index("ix_outbox_created_at", "outbox", ["created_at"])
    _create_webhook()
    _create_delivery()
    op.create_table(
        "delivery_attempt",
        sa.Column("delivery_id", _ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("duration_s", _TIME, nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("error", sa.String(length=500)),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["delivery.id"],
            name=op.f("fk_delivery_attempt_delivery_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("delivery_id", "number", name=op.f("pk_delivery_attempt")),
    )


def _create_webhook() -> None:
    op.create_table(
        "webhook",
        sa.Column("id", _ID, nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_sha256", sa.String(length=64), nullable=False),
        sa.Column(
            "every_job", sa.Boolean(), nullable=False, comment="told of all jobs, not only of some"
        ),
        sa.Column("events", sa.JSON(), nullable=False, comment="list of events told of every job"),
        sa.Column(
            "generation", sa.Integer(), nullable=False, comment="how often its secret was made"
        ),
        sa.Column(
            "mark",
            sa.String(length=16),
            nullable=False,
            comment="tells whether the root secret is the same",
        ),
        sa.Column("former_until", _TIME, comment="until when the secret before still signs"),
        sa.Column("standing", sa.String(length=8), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False, comment="in a row"),
        sa.Column("held_until", _TIME, nullable=False),
        sa.Column("next_at", _TIME, comment="when something may be sent, if anything waits"),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("succeeded_at", _TIME),
        sa.Column("failed_at", _TIME),
        sa.Column("disabled_at", _TIME),
        sa.Column("disabled_reason", sa.String(length=200)),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
        sa.UniqueConstraint("tenant", "url_sha256", name=op.f("uq_webhook_tenant_url_sha256")),
    )
    op.create_index("ix_webhook_tenant_id", "webhook", ["tenant", "id"])
    _index("ix_webhook_every_job", "webhook", ["tenant"], "every_job")
    _index("ix_webhook_next", "webhook", ["standing", "next_at"], "next_at IS NOT NULL")


def _create_delivery() -> None:
    op.create_table(
        "delivery",
        sa.Column("id", _ID, nullable=False),
        sa.Column("event_id", _ID, nullable=False),
        sa.Column("webhook_id", _ID, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("dispatch_no", sa.Integer(), nullable=False),
        sa.Column("dispatched_at", _TIME),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column(
            "tries", sa.Integer(), nullable=False, comment="of this round; a replay is a new"
        ),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("lease_until", _TIME),
        sa.Column(
            "noticed", sa.Boolean(), nullable=False, comment="counted in its webhook's next_at"
        ),
        sa.Column("not_before", _TIME, nullable=False),
        sa.Column("round_at", _TIME, nullable=False, comment="when this round of tries began"),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("done_at", _TIME),
        sa.Column("status", sa.Integer(), comment="of the last answer"),
        sa.Column("error", sa.String(length=500), comment="of the last attempt"),
        sa.ForeignKeyConstraint(
            ["event_id"], ["outbox.id"], name=op.f("fk_delivery_event_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhook.id"], name=op.f("fk_delivery_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sa.UniqueConstraint("event_id", "webhook_id", name=op.f("uq_delivery_event_id_webhook_id")),
    )
    op.create_index("ix_delivery_webhook", "delivery", ["webhook_id", "id"])
    _index("ix_delivery_pending", "delivery", ["webhook_id", "not_before"], "state = 'pending'")
    _index("ix_delivery_unnoticed", "delivery", ["webhook_id"], "state = 'pending' AND NOT noticed")
    _index(
        "ix_delivery_in_flight",
        "delivery",
        ["webhook_id", "state", "lease_until"],
        "state IN ('dispatched', 'leased')",
    )


def downgrade() -> None:
    op.drop_table("delivery_attempt")
    op.drop_table("delivery")
    op.drop_table("webhook")
    op.drop_index("ix_outbox_created_at", table_name="outbox")
    op.execute("DELETE FROM outbox WHERE job_id IS NULL")
    with op.batch_alter_table("outbox") as outbox:
        outbox.drop_column("body")
        outbox.drop_column("data")
        outbox.alter_column("job_id", existing_type=_ID, nullable=False, comment=None)
    op.drop_index("ix_job_progress", table_name="job")
    for name in ("progress_at", "webhook_events", "webhook_id"):
        op.drop_column("job", name)


def _index(name: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(
        name, table, columns, unique=False, sqlite_where=condition, postgresql_where=condition
    )
