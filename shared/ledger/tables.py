"""The ledger's tables, in SQLAlchemy Core. Knows columns and indexes; moves nothing.

Every row carries a tenant or belongs to a job that does. Times are float epoch seconds of the
database's clock (`_at`). User text sits only in columns of type `SealedText`.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.types import TypeDecorator

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class SealedText(TypeDecorator[str]):
    """The one seam through which user text enters and leaves SQL; encryption at rest goes here."""

    impl = Text
    cache_ok = True


JobId = String(26)
WHOLE_JOB = -1  # `part` of a step or deliverable that concerns the whole job

job = Table(
    "job",
    metadata,
    Column("id", JobId, primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("paused", Boolean, nullable=False, default=False),
    Column("paused_at", Float(53)),
    Column("tier", String(16), nullable=False),
    Column("title", SealedText, nullable=False, default=""),
    Column("metadata", JSON, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("characters", Integer, nullable=False),
    Column("expected_audio_s", Float(53), nullable=False, server_default="0"),
    Column("segments_total", Integer, nullable=False, default=0),
    Column("segments_skipped", Integer, nullable=False, default=0),
    Column("parts_total", Integer, nullable=False, default=0),
    Column("parts_rendering", Integer, nullable=False, default=0),
    Column("parts_remaining", Integer, nullable=False, default=0),
    Column("created_at", Float(53), nullable=False),
    Column("due_at", Float(53), nullable=False),
    Column("first_due_at", Float(53), comment="target of its first audio"),
    Column("planned_at", Float(53)),
    Column("started_at", Float(53)),
    Column("rendered_at", Float(53)),
    Column("ended_at", Float(53)),
    Column("error_code", String(64)),
    Column("error_message", Text),
    Column("head_due_at", Float(53), comment="due time of the first waiting segment, if any waits"),
    Column("turn_s", Float(53), nullable=False, server_default="0"),
    Column("segments_reused", Integer, nullable=False, default=0, server_default="0"),
    Column("parts_reused", Integer, nullable=False, default=0, server_default="0"),
    Column("retention_s", Float(53), nullable=False, server_default="604800"),
    Column("expires_at", Float(53), comment="set when it ends"),
    Column("deleted_at", Float(53), comment="when its owner asked for its audio to go at once"),
    Column("forgotten_at", Float(53), comment="when text and references had gone, after expiry"),
    Column("unswept_since", Float(53), comment="nothing of it can count any more since then"),
    Column("webhook_id", JobId, comment="webhook that the job itself named"),
    Column("webhook_events", JSON, comment="list of events that this webhook is told"),
    Column(
        "round",
        Integer,
        nullable=False,
        default=0,
        server_default="0",
        comment="how often it was tried again",
    ),
    Column("retried_at", Float(53)),
    Column("progress_at", Float(53), comment="when the next progress event is due, if any is"),
)
HAS_PROGRESS_DUE = text("job.progress_at IS NOT NULL")
Index(
    "ix_job_progress",
    job.c.progress_at,
    sqlite_where=text("progress_at IS NOT NULL"),
    postgresql_where=text("progress_at IS NOT NULL"),
)
IS_WAITING_TO_RENDER = text("job.state = 'rendering' AND job.head_due_at IS NOT NULL")
for _name, _columns in (
    ("ix_job_head", (job.c.tier, job.c.head_due_at, job.c.id)),
    ("ix_job_end", (job.c.tier, job.c.due_at, job.c.id)),
    ("ix_job_turn", (job.c.tier, job.c.tenant, job.c.turn_s, job.c.head_due_at, job.c.id)),
):
    Index(
        _name,
        *_columns,
        sqlite_where=text("state = 'rendering' AND head_due_at IS NOT NULL"),
        postgresql_where=text("state = 'rendering' AND head_due_at IS NOT NULL"),
    )
# Conditions in the very words of the partial indexes: with a bound parameter in their place a
# database could not prove that the index holds all rows it is asked for.
IS_WAITING_JOB = text("job.state IN ('accepted', 'planning', 'rendering')")
IS_SETTLED_JOB = text("job.state IN ('completed', 'partial', 'failed')")
IS_PAUSED_JOB = text("job.paused_at IS NOT NULL")
Index("ix_job_tenant_id", job.c.tenant, job.c.id)
# Jobs whose audio is not all there; holds all that the figures of a tier need.
Index(
    "ix_job_waiting",
    job.c.tier,
    job.c.state,
    job.c.paused_at,
    job.c.created_at,
    job.c.characters,
    sqlite_where=text("state IN ('accepted', 'planning', 'rendering')"),
    postgresql_where=text("state IN ('accepted', 'planning', 'rendering')"),
)
Index(
    "ix_job_waiting_due",
    job.c.tier,
    job.c.due_at,
    job.c.id,
    job.c.paused_at,
    sqlite_where=text("state IN ('accepted', 'planning', 'rendering')"),
    postgresql_where=text("state IN ('accepted', 'planning', 'rendering')"),
)
Index(
    "ix_job_settled",
    job.c.tier,
    job.c.ended_at,
    job.c.due_at,
    job.c.state,
    sqlite_where=text("state IN ('completed', 'partial', 'failed')"),
    postgresql_where=text("state IN ('completed', 'partial', 'failed')"),
)
IS_HEARD_JOB = text("job.started_at IS NOT NULL AND job.first_due_at IS NOT NULL")
IS_UNHEARD_JOB = text("job.started_at IS NULL AND job.first_due_at IS NOT NULL")
Index(
    "ix_job_heard",
    job.c.tier,
    job.c.started_at,
    job.c.first_due_at,
    sqlite_where=text("started_at IS NOT NULL AND first_due_at IS NOT NULL"),
    postgresql_where=text("started_at IS NOT NULL AND first_due_at IS NOT NULL"),
)
Index(
    "ix_job_unheard",
    job.c.tier,
    job.c.first_due_at,
    job.c.state,
    job.c.paused_at,
    sqlite_where=text("started_at IS NULL AND first_due_at IS NOT NULL"),
    postgresql_where=text("started_at IS NULL AND first_due_at IS NOT NULL"),
)
Index(
    "ix_job_paused",
    job.c.id,
    sqlite_where=text("paused_at IS NOT NULL"),
    postgresql_where=text("paused_at IS NOT NULL"),
)
Index(
    "ix_job_alive",
    job.c.created_at,
    sqlite_where=text("ended_at IS NULL"),
    postgresql_where=text("ended_at IS NULL"),
)

Index(
    "ix_job_alive_tenant",
    job.c.tenant,
    sqlite_where=text("ended_at IS NULL"),
    postgresql_where=text("ended_at IS NULL"),
)

IS_KEPT_JOB = text("job.state IN ('completed', 'partial', 'failed', 'cancelled')")
IS_EXPIRED_JOB = text("job.state = 'expired' AND job.forgotten_at IS NULL")
IS_UNSWEPT_JOB = text("job.unswept_since IS NOT NULL")
Index(
    "ix_job_kept",
    job.c.expires_at,
    sqlite_where=text("state IN ('completed', 'partial', 'failed', 'cancelled')"),
    postgresql_where=text("state IN ('completed', 'partial', 'failed', 'cancelled')"),
)
Index(
    "ix_job_expired",
    job.c.id,
    sqlite_where=text("state = 'expired' AND forgotten_at IS NULL"),
    postgresql_where=text("state = 'expired' AND forgotten_at IS NULL"),
)
Index(
    "ix_job_unswept",
    job.c.unswept_since,
    sqlite_where=text("unswept_since IS NOT NULL"),
    postgresql_where=text("unswept_since IS NOT NULL"),
)

job_text = Table(
    "job_text",
    metadata,
    Column("job_id", JobId, ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("text", SealedText, nullable=False),
    Column("chapters", SealedText, nullable=False, comment="JSON list of [title, start, end]"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("tenant", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("request_sha256", String(64), nullable=False),
    Column("job_id", JobId, nullable=False),
    Column("created_at", Float(53), nullable=False),
)

part = Table(
    "part",
    metadata,
    Column("job_id", JobId, ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("title", SealedText, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("segments_total", Integer, nullable=False),
    Column("remaining", Integer, nullable=False),
    Column("quarantined", Integer, nullable=False, default=0),
    Column("chars_total", Integer, nullable=False),
    Column("chars_done", Integer, nullable=False, default=0),
    Column("audio_s", Float(53), nullable=False, default=0.0),
    Column("assembled", Boolean, nullable=False, default=False),
    Column("marked_at", Float(53), comment="when this part last left a mark"),
)

mark = Table(
    "mark",
    metadata,
    Column("job_id", JobId, ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("at", Float(53), primary_key=True),
    Column("chars", Integer, nullable=False, comment="of the whole job, settled by then"),
    Column("segments", Integer, nullable=False),
    comment="how far a job was every few seconds: what its recent rate is read from",
)

segment = Table(
    "segment",
    metadata,
    Column("job_id", JobId, ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("part", Integer, nullable=False),
    Column("kind", String(8), nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("text", SealedText, nullable=False),
    Column("pause_after_s", Float(53), nullable=False),
    Column("reason", String(200), nullable=False, default=""),
    Column("tier", String(16), nullable=False),
    Column("chars", Integer, nullable=False),
    Column("due_at", Float(53), nullable=False),
    Column("content_key", String(64), nullable=False, default=""),
    Column("take", Integer, nullable=False, default=0),
    Column("state", String(16), nullable=False),
    Column("dispatch_no", Integer, nullable=False, default=0),
    Column("dispatched_at", Float(53)),
    Column("attempt", Integer, nullable=False, default=0),
    Column("crashes", Integer, nullable=False, default=0),
    Column("suspect", Boolean, nullable=False, default=False),
    Column(
        "abandoned",
        Integer,
        nullable=False,
        default=0,
        server_default="0",
        comment="leases in a row that ran out without another word of their holder",
    ),
    Column(
        "alone_token",
        Integer,
        nullable=False,
        default=0,
        server_default="0",
        comment="the claim under which nothing else runs in its consumer",
    ),
    Column(
        "blamed_token",
        Integer,
        nullable=False,
        default=0,
        server_default="0",
        comment="the newest claim that counts as a crash: each counts once",
    ),
    Column("fallback", Boolean, nullable=False, default=False, server_default=false()),
    Column("token", Integer, nullable=False, default=0),
    Column("lease_until", Float(53)),
    Column("not_before", Float(53), nullable=False, default=0.0),
    Column("claimed_at", Float(53)),
    Column("done_at", Float(53)),
    Column("object_key", String(255), comment="may hold the audio of several segments"),
    Column("offset_bytes", BigInteger, nullable=False, default=0, server_default="0"),
    Column("size_bytes", BigInteger, nullable=False, default=0, server_default="0"),
    Column("sha256", String(64), comment="of the bytes of this segment alone"),
    Column("samples", BigInteger, nullable=False, default=0),
    Column("rate_hz", Integer, nullable=False, default=0),
    Column(
        "losses",
        Integer,
        nullable=False,
        default=0,
        server_default="0",
        comment="how often its stored audio was found gone or damaged",
    ),
    Column(
        "follows",
        Boolean,
        nullable=False,
        default=False,
        server_default=false(),
        comment="its audio may be there by the time that it is claimed: look first",
    ),
    Column("error", Text),
)
IS_PENDING = text("segment.state = 'pending'")
IS_IN_FLIGHT = text("segment.state IN ('dispatched', 'leased')")
# By an engine, for this very job: reused audio took no time that a rate could be read from.
IS_SPOKEN = text(
    "segment.state = 'done' AND segment.samples > 0 AND segment.claimed_at IS NOT NULL"
)
Index(
    "ix_segment_heads",
    segment.c.job_id,
    segment.c.due_at,
    segment.c.index,
    sqlite_where=text("state = 'pending'"),
    postgresql_where=text("state = 'pending'"),
)
Index(
    "ix_segment_pending",
    segment.c.tier,
    segment.c.due_at,
    segment.c.job_id,
    segment.c.index,
    sqlite_where=text("state = 'pending'"),
    postgresql_where=text("state = 'pending'"),
)
Index(
    "ix_segment_in_flight",
    segment.c.tier,
    segment.c.state,
    segment.c.lease_until,
    sqlite_where=text("state IN ('dispatched', 'leased')"),
    postgresql_where=text("state IN ('dispatched', 'leased')"),
)
Index(
    "ix_segment_spoken",
    segment.c.tier,
    segment.c.done_at,
    sqlite_where=text("state = 'done' AND samples > 0 AND claimed_at IS NOT NULL"),
    postgresql_where=text("state = 'done' AND samples > 0 AND claimed_at IS NOT NULL"),
)
IS_FOLLOWER = text("segment.state = 'pending' AND segment.follows")
Index(
    "ix_segment_followers",
    segment.c.content_key,
    sqlite_where=text("state = 'pending' AND follows"),
    postgresql_where=text("state = 'pending' AND follows"),
)
Index("ix_segment_part", segment.c.job_id, segment.c.part, segment.c.index)

step = Table(
    "step",
    metadata,
    Column("id", JobId, primary_key=True),
    Column("job_id", JobId, ForeignKey("job.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("part", Integer, nullable=False, default=WHOLE_JOB),
    Column("round", Integer, nullable=False, default=0),
    Column("state", String(16), nullable=False),
    Column("dispatch_no", Integer, nullable=False, default=0),
    Column("dispatched_at", Float(53)),
    Column("attempt", Integer, nullable=False, default=0),
    Column("token", Integer, nullable=False, default=0),
    Column("lease_until", Float(53)),
    Column("not_before", Float(53), nullable=False, default=0.0),
    Column("created_at", Float(53), nullable=False),
    Column("done_at", Float(53)),
    Column("error", Text),
    Column(
        "abandoned",
        Integer,
        nullable=False,
        default=0,
        server_default="0",
        comment="leases in a row that ran out without another word of their holder",
    ),
    UniqueConstraint("job_id", "kind", "part", "round"),
)
IS_OPEN_STEP = text("step.state IN ('pending', 'dispatched', 'leased')")
Index(
    "ix_step_open",
    step.c.kind,
    step.c.created_at,
    sqlite_where=text("state IN ('pending', 'dispatched', 'leased')"),
    postgresql_where=text("state IN ('pending', 'dispatched', 'leased')"),
)

deliverable = Table(
    "deliverable",
    metadata,
    Column("job_id", JobId, ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("format", String(16), nullable=False),
    Column("content_type", String(64), nullable=False),
    Column("object_key", String(255), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("samples", BigInteger, nullable=False, default=0),
    Column("rate_hz", Integer, nullable=False, default=0),
    Column("timeline", JSON, comment="[[segment index, start sample, end sample], ...]"),
    Column("created_at", Float(53), nullable=False),
)

stored_object = Table(
    "stored_object",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("job_id", JobId, nullable=False, comment="that stored it; others may refer to it too"),
    Column("refs", Integer, nullable=False, comment="segments and deliverables that point to it"),
    Column("condemned_at", Float(53), comment="nobody needs it from then on; null: referred to"),
    Column("doomed_at", Float(53), comment="being deleted: no reference may be added any more"),
    Column("created_at", Float(53), nullable=False),
)
IS_CONDEMNED = text("stored_object.condemned_at IS NOT NULL")
Index(
    "ix_stored_object_condemned",
    stored_object.c.condemned_at,
    sqlite_where=text("condemned_at IS NOT NULL"),
    postgresql_where=text("condemned_at IS NOT NULL"),
)
Index("ix_stored_object_job_id", stored_object.c.job_id)

rendering = Table(
    "rendering",
    metadata,
    Column("tenant", String(64), primary_key=True),
    Column("content_key", String(64), primary_key=True),
    Column("take", Integer, primary_key=True, autoincrement=False),
    Column(
        "object_key",
        String(255),
        ForeignKey("stored_object.key", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("offset_bytes", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("samples", BigInteger, nullable=False),
    Column("rate_hz", Integer, nullable=False),
    comment="the newest audio of each content, for other jobs to reuse",
)
Index("ix_rendering_object_key", rendering.c.object_key)

encoding = Table(
    "encoding",
    metadata,
    Column("tenant", String(64), primary_key=True),
    Column("part_key", String(64), primary_key=True),
    Column(
        "object_key",
        String(255),
        ForeignKey("stored_object.key", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("samples", BigInteger, nullable=False),
    Column("rate_hz", Integer, nullable=False),
    Column(
        "timeline",
        JSON,
        nullable=False,
        comment="[[segment index within the part, start sample, end sample], ...]",
    ),
    comment="the newest file of each assembled part, for other jobs to reuse",
)
Index("ix_encoding_object_key", encoding.c.object_key)

engine = Table(
    "engine",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("info", JSON, nullable=False),
    Column("updated_at", Float(53), nullable=False),
)

node = Table(
    "node",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("engine", String(64), primary_key=True),
    Column("slots", Integer, nullable=False),
    Column("heartbeat_at", Float(53), nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", JobId, primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("job_id", JobId, ForeignKey("job.id", ondelete="CASCADE"), comment="null: a test event"),
    Column("type", String(32), nullable=False),
    Column("round", Integer, nullable=False, default=0),
    Column("created_at", Float(53), nullable=False),
    Column("data", SealedText, comment="JSON of what is told; null: nobody was to be told"),
    Column(
        "body", SealedText, comment="what is sent, the same at every try; null before the first"
    ),
    UniqueConstraint("job_id", "type", "round"),
)
Index("ix_outbox_created_at", outbox.c.created_at)

webhook = Table(
    "webhook",
    metadata,
    Column("id", JobId, primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("url", Text, nullable=False),
    Column("url_sha256", String(64), nullable=False),
    Column("every_job", Boolean, nullable=False, comment="told of all jobs, not only of some"),
    Column("events", JSON, nullable=False, comment="list of events told of every job"),
    Column("generation", Integer, nullable=False, comment="how often its secret was made"),
    Column("mark", String(16), nullable=False, comment="tells whether the root secret is the same"),
    Column("former_until", Float(53), comment="until when the secret before still signs"),
    Column("standing", String(8), nullable=False),
    Column("failures", Integer, nullable=False, default=0, comment="in a row"),
    Column("held_until", Float(53), nullable=False, default=0.0),
    Column("next_at", Float(53), comment="when something may be sent, if anything waits"),
    Column("created_at", Float(53), nullable=False),
    Column("succeeded_at", Float(53)),
    Column("failed_at", Float(53)),
    Column("disabled_at", Float(53)),
    Column("disabled_reason", String(200)),
    UniqueConstraint("tenant", "url_sha256"),
)
Index("ix_webhook_tenant_id", webhook.c.tenant, webhook.c.id)
Index(
    "ix_webhook_every_job",
    webhook.c.tenant,
    sqlite_where=text("every_job"),
    postgresql_where=text("every_job"),
)
HAS_WAITING = text("webhook.next_at IS NOT NULL")
Index(
    "ix_webhook_next",
    webhook.c.standing,
    webhook.c.next_at,
    sqlite_where=text("next_at IS NOT NULL"),
    postgresql_where=text("next_at IS NOT NULL"),
)

delivery = Table(
    "delivery",
    metadata,
    Column("id", JobId, primary_key=True),
    Column("event_id", JobId, ForeignKey("outbox.id", ondelete="CASCADE"), nullable=False),
    Column("webhook_id", JobId, ForeignKey("webhook.id", ondelete="CASCADE"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("dispatch_no", Integer, nullable=False, default=0),
    Column("dispatched_at", Float(53)),
    Column("attempt", Integer, nullable=False, default=0),
    Column("tries", Integer, nullable=False, default=0, comment="of this round; a replay is a new"),
    Column("token", Integer, nullable=False, default=0),
    Column("lease_until", Float(53)),
    Column("noticed", Boolean, nullable=False, comment="counted in its webhook's next_at"),
    Column("not_before", Float(53), nullable=False),
    Column("round_at", Float(53), nullable=False, comment="when this round of tries began"),
    Column("created_at", Float(53), nullable=False),
    Column("done_at", Float(53)),
    Column("status", Integer, comment="of the last answer"),
    Column("error", String(500), comment="of the last attempt"),
    UniqueConstraint("event_id", "webhook_id"),
)
IS_PENDING_DELIVERY = text("delivery.state = 'pending'")
IS_UNNOTICED_DELIVERY = text("delivery.state = 'pending' AND NOT delivery.noticed")
IS_DELIVERY_IN_FLIGHT = text("delivery.state IN ('dispatched', 'leased')")
Index("ix_delivery_webhook", delivery.c.webhook_id, delivery.c.id)
Index(
    "ix_delivery_pending",
    delivery.c.webhook_id,
    delivery.c.not_before,
    sqlite_where=text("state = 'pending'"),
    postgresql_where=text("state = 'pending'"),
)
Index(
    "ix_delivery_unnoticed",
    delivery.c.webhook_id,
    sqlite_where=text("state = 'pending' AND NOT noticed"),
    postgresql_where=text("state = 'pending' AND NOT noticed"),
)
Index(
    "ix_delivery_in_flight",
    delivery.c.webhook_id,
    delivery.c.state,
    delivery.c.lease_until,
    sqlite_where=text("state IN ('dispatched', 'leased')"),
    postgresql_where=text("state IN ('dispatched', 'leased')"),
)

delivery_attempt = Table(
    "delivery_attempt",
    metadata,
    Column("delivery_id", JobId, ForeignKey("delivery.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("at", Float(53), nullable=False),
    Column("duration_s", Float(53), nullable=False),
    Column("status", Integer),
    Column("error", String(500)),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String(26), primary_key=True),
    Column("tenant", String(64), nullable=False),
    Column("name", String(100), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("tiers", JSON, nullable=False, comment="list of tiers that jobs may have"),
    Column("quota_audio_s", Float(53), comment="audio still to be made; null: no limit"),
    Column("quota_jobs", Integer, comment="jobs alive; null: no limit"),
    Column("created_at", Float(53), nullable=False),
    Column("revoked_at", Float(53)),
)

tenant_share = Table(
    "tenant_share",
    metadata,
    Column("tier", String(16), primary_key=True),
    Column("tenant", String(64), primary_key=True),
    Column("turn_s", Float(53), nullable=False),
    Column("clock_s", Float(53), nullable=False),
)

pool = Table(
    "pool",
    metadata,
    Column("name", String(16), primary_key=True),
    Column("state", JSON, nullable=False),
)
