"""The webhook that a job itself names: made or found when the job is accepted."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from shared.ledger import webhooks
from shared.ledger.webhooks import MarkOf
from shared.webhooks import EventType


@dataclass(frozen=True, slots=True)
class NamedWebhook:
    """Where a job itself wants news sent: a URL in its normal form, and which news."""

    url: str
    events: Sequence[EventType]


def told_columns(
    conn: Connection,
    tenant: str,
    named: NamedWebhook | None,
    mark_of: MarkOf | None,
    now: float,
) -> dict[str, object]:
    """The columns of a job that say who is told of it, beside those who are told of all.

    `mark_of` is needed when it names a webhook. Raises ConflictError for a disabled one.
    """
    told: dict[str, object] = {}
    if named is not None:
        if mark_of is None:
            raise RuntimeError("a job with a webhook needs the farm's signing secrets")
        webhook_id = webhooks.find_or_make(conn, tenant, named.url, mark_of)
        webhooks.require_enabled(conn, webhook_id)
        told = {"webhook_id": webhook_id, "webhook_events": [event.value for event in named.events]}
    if is_progress_told(conn, tenant, () if named is None else named.events):
        told["progress_at"] = now
    return told


def require_usable(conn: Connection, tenant: str, named: NamedWebhook) -> None:
    """Raise ConflictError where a job that names this webhook would be refused. Makes none."""
    webhook_id = webhooks.find(conn, tenant, named.url)
    if webhook_id is not None:
        webhooks.require_enabled(conn, webhook_id)


def is_progress_told(conn: Connection, tenant: str, own_events: Collection[str]) -> bool:
    """Whether anybody is told how a job goes on, whose own webhook is told these events."""
    return EventType.PROGRESS in own_events or webhooks.wants_progress(conn, tenant)
