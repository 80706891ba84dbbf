"""Webhooks in the ledger: addresses that tenants want told, and how they answer.

One row for a tenant and a URL, whether it was registered for every job or named by one. Knows no
secret and no network.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, case, func, select, update

from shared.errors import ConflictError, LedgerBusyError, NotFoundError, UsageError
from shared.ids import new_id
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.upsert import insert_or_skip
from shared.ledger.webhook_turns import fail_waiting, lock, of_webhook, refresh
from shared.webhook_secrets import SecretIdentity
from shared.webhooks import EventType, Standing

_TRIES = 5  # to meet a row that others make and remove at the same time
MOST_FOR_EVERY_JOB = 20  # of one tenant: each end of a job locks and writes to all of them

MarkOf = Callable[[SecretIdentity], str]


@dataclass(frozen=True, slots=True)
class WebhookRecord:
    """A webhook as stored. `events` are told of every job; they are empty unless `every_job`."""

    id: str
    tenant: str
    url: str
    every_job: bool
    events: tuple[EventType, ...]
    generation: int
    mark: str
    former_until: float | None
    standing: Standing
    failures: int
    held_until: float
    created_at: float
    succeeded_at: float | None
    failed_at: float | None
    disabled_at: float | None
    disabled_reason: str | None
    waiting: int

    @property
    def secret(self) -> SecretIdentity:
        """Which secret its events are signed with now."""
        return SecretIdentity(self.tenant, self.id, self.generation)


def find_or_make(conn: Connection, tenant: str, url: str, mark_of: MarkOf) -> str:
    """The id of the webhook at a URL in its normal form; made if there is none.

    However many ask at once, there is one. It stays locked until the transaction ends.
    """
    digest = _digest(url)
    found = _at(tenant, digest).with_for_update()
    for _ in range(_TRIES):
        webhook_id = conn.execute(found).scalar_one_or_none()
        if webhook_id is not None:
            return str(webhook_id)
        _make(conn, SecretIdentity(tenant, new_id(), 1), url, digest, mark_of)
    raise LedgerBusyError("the webhook is removed and made again too quickly")


def find(conn: Connection, tenant: str, url: str) -> str | None:
    """The id of the webhook at a URL in its normal form, if there is one."""
    found = conn.execute(_at(tenant, _digest(url))).scalar_one_or_none()
    return None if found is None else str(found)


def _digest(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def _at(tenant: str, digest: str) -> Select[Any]:
    return select(t.webhook.c.id).where(
        t.webhook.c.tenant == tenant, t.webhook.c.url_sha256 == digest
    )


def _make(conn: Connection, secret: SecretIdentity, url: str, digest: str, mark_of: MarkOf) -> None:
    """Write a webhook, unless somebody else just did."""
    insert_or_skip(
        conn,
        t.webhook,
        {
            "id": secret.webhook_id,
            "tenant": secret.tenant,
            "url": url,
            "url_sha256": digest,
            "every_job": False,
            "events": [],
            "generation": secret.generation,
            "mark": mark_of(secret),
            "standing": Standing.NEW,
            "failures": 0,
            "held_until": 0.0,
            "created_at": read_clock(conn),
        },
    )


def register(
    conn: Connection, tenant: str, url: str, events: Sequence[EventType], mark_of: MarkOf
) -> tuple[WebhookRecord, bool]:
    """Have a URL told these events of every job. Returns it, and whether it was so before.

    Raises UsageError `too-many-webhooks`.
    """
    webhook_id = find_or_make(conn, tenant, url, mark_of)
    before = get(conn, tenant, webhook_id).every_job
    c = t.webhook.c
    others = conn.execute(
        select(func.count()).where(c.tenant == tenant, c.every_job, c.id != webhook_id)
    ).scalar_one()
    if others >= MOST_FOR_EVERY_JOB:
        raise UsageError(
            f"{MOST_FOR_EVERY_JOB} webhooks are told of every job; that is the most",
            code="too-many-webhooks",
        )
    conn.execute(
        update(t.webhook)
        .where(c.id == webhook_id)
        .values(every_job=True, events=[event.value for event in events])
    )
    return get(conn, tenant, webhook_id), before


def wants_progress(conn: Connection, tenant: str) -> bool:
    """Whether some webhook is told of the progress of all this tenant's jobs."""
    rows = conn.execute(
        select(t.webhook.c.events).where(t.webhook.c.tenant == tenant, t.webhook.c.every_job)
    )
    return any(EventType.PROGRESS in row.events for row in rows)


def require_enabled(conn: Connection, webhook_id: str) -> None:
    """Raise ConflictError `webhook-disabled` when nothing would be sent there."""
    row = conn.execute(
        select(t.webhook.c.disabled_at, t.webhook.c.disabled_reason).where(
            t.webhook.c.id == webhook_id
        )
    ).one()
    if row.disabled_at is not None:
        raise ConflictError(
            f"the webhook {webhook_id} at this URL is disabled ({row.disabled_reason}); "
            "enable it first",
            code="webhook-disabled",
            webhook_id=webhook_id,
        )


def get(conn: Connection, tenant: str, webhook_id: str) -> WebhookRecord:
    """One webhook of this tenant. Raises NotFoundError."""
    row = conn.execute(
        _SELECT.where(t.webhook.c.id == webhook_id, t.webhook.c.tenant == tenant)
    ).one_or_none()
    if row is None:
        raise NotFoundError("there is no such webhook", code="webhook-not-found")
    return _record(row)


def page(
    conn: Connection, tenant: str, *, limit: int, before_id: str | None = None
) -> list[WebhookRecord]:
    """Newest first; pass the last id of a page as `before_id` for the next one."""
    query = _SELECT.where(t.webhook.c.tenant == tenant)
    if before_id is not None:
        query = query.where(t.webhook.c.id < before_id)
    return [
        _record(row) for row in conn.execute(query.order_by(t.webhook.c.id.desc()).limit(limit))
    ]


def remove(conn: Connection, tenant: str, webhook_id: str) -> None:
    """Forget a webhook and its deliveries. Raises NotFoundError."""
    removed = conn.execute(
        t.webhook.delete().where(t.webhook.c.id == webhook_id, t.webhook.c.tenant == tenant)
    )
    if removed.rowcount != 1:
        raise NotFoundError("there is no such webhook", code="webhook-not-found")


def rotate(
    conn: Connection, tenant: str, webhook_id: str, mark_of: MarkOf, *, overlap_s: float
) -> WebhookRecord:
    """Give a webhook a new secret; the one before signs too for `overlap_s` seconds.

    Raises ConflictError `rotation-under-way` while two secrets sign already, unless `overlap_s` is
    0: a change that is asked for twice must not end the secret that receivers still have.
    """
    lock(conn, webhook_id)
    record = get(conn, tenant, webhook_id)
    secret, until = record.secret, record.former_until
    if overlap_s and until is not None and until > read_clock(conn):
        raise ConflictError(
            "the secret was just changed and the one before still signs; wait until it does not, "
            "or change it without overlap",
            code="rotation-under-way",
        )
    fresh = SecretIdentity(secret.tenant, secret.webhook_id, secret.generation + 1)
    conn.execute(
        update(t.webhook)
        .where(t.webhook.c.id == webhook_id)
        .values(
            generation=fresh.generation,
            mark=mark_of(fresh),
            former_until=read_clock(conn) + overlap_s if overlap_s else None,
        )
    )
    return get(conn, tenant, webhook_id)


def disable(conn: Connection, webhook_id: str, reason: str) -> None:
    """Send nothing there any more; what waits has failed, and may be replayed once enabled."""
    lock(conn, webhook_id)
    conn.execute(
        update(t.webhook)
        .where(t.webhook.c.id == webhook_id, t.webhook.c.disabled_at.is_(None))
        .values(disabled_at=read_clock(conn), disabled_reason=reason, next_at=None)
    )
    fail_waiting(conn, webhook_id)


def enable(conn: Connection, webhook_id: str) -> None:
    """Send there again, as to a webhook that nothing is known of."""
    lock(conn, webhook_id)
    conn.execute(
        update(t.webhook)
        .where(t.webhook.c.id == webhook_id)
        .values(
            disabled_at=None,
            disabled_reason=None,
            failures=0,
            held_until=0.0,
            standing=case(
                (t.webhook.c.succeeded_at.is_(None), Standing.NEW), else_=Standing.FAILING
            ),
        )
    )
    refresh(conn, webhook_id)


_WAITING = of_webhook(func.count(t.delivery.c.id), t.IS_PENDING_DELIVERY).scalar_subquery()
_SELECT = select(t.webhook, _WAITING.label("waiting"))
_FIELDS = tuple(name for name in WebhookRecord.__slots__)


def _record(row: Row[Any]) -> WebhookRecord:
    values = {name: getattr(row, name) for name in _FIELDS}
    values["events"] = tuple(map(EventType, row.events))
    values["standing"] = Standing(row.standing)
    return WebhookRecord(**values)
