"""The outbox: what happened, written in the transaction in which it happened, once.

With an event go its deliveries, one for each webhook that is told of it. Knows no network.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, or_, select, update

from shared.ids import new_id
from shared.jobs import JobState
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.event_data import job_data
from shared.ledger.webhook_turns import DISABLED
from shared.webhooks import END_EVENTS, DeliveryState, EventType

_PROGRESS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Target:
    """A webhook that is told of an event; a disabled one gets a delivery that failed at once."""

    webhook_id: str
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class ProgressDue:
    """A job whose next progress event was due at `at`."""

    job_id: str
    at: float


def record_end(conn: Connection, job_id: str, state: JobState) -> None:
    """Append the end event of a job. Call only from the transaction that moved it there."""
    was = conn.execute(select(t.job.c.progress_at).where(t.job.c.id == job_id)).scalar_one()
    if was is not None:
        conn.execute(update(t.job).where(t.job.c.id == job_id).values(progress_at=None))
        _drop_progress(conn, job_id)
    _record_job(conn, job_id, END_EVENTS[state])


def progress_due(conn: Connection) -> list[ProgressDue]:
    """Jobs that are due a progress event, the longest due first."""
    c = t.job.c
    rows = conn.execute(
        select(c.id, c.progress_at)
        .where(t.HAS_PROGRESS_DUE, c.progress_at <= read_clock(conn))
        .order_by(c.progress_at)
        .limit(_PROGRESS_AT_ONCE)
    )
    return [ProgressDue(row.id, row.progress_at) for row in rows]


def record_progress(conn: Connection, due: ProgressDue, *, every_s: float) -> bool:
    """Append a progress event, if the job is being rendered; the next is due `every_s` later.

    Of two that do so at once, the conditional update lets one.
    """
    mine = conn.execute(
        update(t.job)
        .where(t.job.c.id == due.job_id, t.job.c.progress_at == due.at)
        .values(progress_at=read_clock(conn) + every_s)
        .returning(t.job.c.state, t.job.c.paused)
    ).one_or_none()
    if mine is None or mine.paused or mine.state != JobState.RENDERING:
        return False
    _drop_progress(conn, due.job_id)
    _record_job(conn, due.job_id, EventType.PROGRESS)
    return True


def record_test(conn: Connection, tenant: str, webhook_id: str) -> str:
    """Append an event that tells nothing, for this webhook alone. Returns its delivery's id."""
    event_id = _append(conn, tenant, None, EventType.TEST, {"webhook_id": webhook_id})
    [delivery_id] = _deliver(conn, event_id, [Target(webhook_id)])
    return delivery_id


def freeze_body(conn: Connection, event_id: str, body: str) -> str:
    """Fix what is sent for an event, unless it is fixed already. Returns what it is."""
    conn.execute(
        update(t.outbox)
        .where(t.outbox.c.id == event_id, t.outbox.c.body.is_(None))
        .values(body=body)
    )
    stored = conn.execute(select(t.outbox.c.body).where(t.outbox.c.id == event_id)).scalar_one()
    return str(stored)


def forget_old(conn: Connection, keep_s: float) -> int:
    """Delete events older than `keep_s` of which nothing is under way, with their deliveries."""
    under_way = select(t.delivery.c.event_id).where(
        t.delivery.c.event_id == t.outbox.c.id,
        t.delivery.c.state.in_(
            (DeliveryState.PENDING, DeliveryState.DISPATCHED, DeliveryState.LEASED)
        ),
    )
    forgotten = conn.execute(
        t.outbox.delete().where(
            t.outbox.c.created_at < read_clock(conn) - keep_s, ~under_way.exists()
        )
    )
    return forgotten.rowcount


def _record_job(conn: Connection, job_id: str, type_: EventType) -> None:
    told_by_job = conn.execute(
        select(t.job.c.tenant, t.job.c.webhook_id, t.job.c.webhook_events).where(
            t.job.c.id == job_id
        )
    ).one()
    targets = _targets(
        conn, told_by_job.tenant, type_, told_by_job.webhook_id, told_by_job.webhook_events or ()
    )
    data = job_data(conn, job_id) if targets else None
    event_id = _append(conn, told_by_job.tenant, job_id, type_, data)
    _deliver(conn, event_id, targets)


def _targets(
    conn: Connection,
    tenant: str,
    type_: EventType,
    own_id: str | None,
    own_events: Collection[str],
) -> list[Target]:
    """The webhooks that are told. None can be removed until the transaction ends.

    That is all that is locked: jobs that end at the same time do not wait for one another.
    """
    c = t.webhook.c
    asked = or_(c.every_job, c.id == own_id) if own_id is not None else c.every_job
    rows = conn.execute(
        select(c.id, c.every_job, c.events, c.disabled_at)
        .where(c.tenant == tenant, asked)
        .with_for_update(read=True, key_share=True)
    ).all()
    return [
        Target(row.id, disabled=row.disabled_at is not None)
        for row in rows
        if (row.every_job and type_ in row.events) or (row.id == own_id and type_ in own_events)
    ]


def _append(
    conn: Connection,
    tenant: str,
    job_id: str | None,
    type_: EventType,
    data: Mapping[str, Any] | None,
) -> str:
    event_id = new_id()
    rounds = 0
    if job_id is not None:  # a job that was retried ends again; its row is locked by its update
        rounds = conn.execute(
            select(func.coalesce(func.max(t.outbox.c.round) + 1, 0)).where(
                t.outbox.c.job_id == job_id, t.outbox.c.type == type_
            )
        ).scalar_one()
    conn.execute(
        t.outbox.insert().values(
            id=event_id,
            tenant=tenant,
            job_id=job_id,
            type=type_,
            round=rounds,
            created_at=read_clock(conn),
            data=None if data is None else json.dumps(data, ensure_ascii=False),
        )
    )
    return event_id


def _deliver(conn: Connection, event_id: str, targets: Iterable[Target]) -> list[str]:
    """Write an event's deliveries; whoever hands out next notices them. Returns their ids."""
    made = []
    for target in targets:
        delivery_id, now = new_id(), read_clock(conn)
        conn.execute(
            t.delivery.insert().values(
                id=delivery_id,
                event_id=event_id,
                webhook_id=target.webhook_id,
                state=DeliveryState.FAILED if target.disabled else DeliveryState.PENDING,
                noticed=False,
                not_before=now,
                round_at=now,
                created_at=now,
                done_at=now if target.disabled else None,
                error=DISABLED if target.disabled else None,
            )
        )
        made.append(delivery_id)
    return made


def _drop_progress(conn: Connection, job_id: str) -> None:
    """Of two pieces of news the later one says it all."""
    progress = select(t.outbox.c.id).where(
        t.outbox.c.job_id == job_id, t.outbox.c.type == EventType.PROGRESS
    )
    conn.execute(
        update(t.delivery)
        .where(t.delivery.c.state == DeliveryState.PENDING, t.delivery.c.event_id.in_(progress))
        .values(state=DeliveryState.DROPPED, done_at=read_clock(conn))
    )
