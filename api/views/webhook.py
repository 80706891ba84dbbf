"""A webhook as its tenant sees it, its secrets, and what became of its deliveries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from api.views.base import View, utc, utc_or_none
from shared.ledger.delivery_log import Attempt, DeliveryRecord
from shared.ledger.webhooks import WebhookRecord
from shared.webhook_secrets import SigningSecrets
from shared.webhooks import DeliveryState, EventType, Standing


class WebhookView(View):
    """An address that is told of jobs."""

    id: str
    object: Literal["webhook"] = "webhook"
    url: str
    every_job: bool = Field(description="false: only of jobs that name it")
    events: list[EventType] = Field(description="what it is told of every job")
    enabled: bool
    disabled_reason: str | None
    standing: Standing = Field(description="what its last answer was like")
    failures: int = Field(description="bad answers in a row")
    waiting: int = Field(description="deliveries that wait")
    held_until: datetime | None = Field(description="left alone until then, after failures")
    created_at: datetime
    succeeded_at: datetime | None
    failed_at: datetime | None

    @classmethod
    def of(cls, record: WebhookRecord) -> Self:
        """The view of a stored webhook."""
        return cls(
            id=record.id,
            url=record.url,
            every_job=record.every_job,
            events=list(record.events),
            enabled=record.disabled_at is None,
            disabled_reason=record.disabled_reason,
            standing=record.standing,
            failures=record.failures,
            waiting=record.waiting,
            held_until=utc(record.held_until) if record.held_until else None,
            created_at=utc(record.created_at),
            succeeded_at=utc_or_none(record.succeeded_at),
            failed_at=utc_or_none(record.failed_at),
        )


class WebhookPage(View):
    """Webhooks, newest first. Pass `next_cursor` as `cursor` for the following page."""

    object: Literal["list"] = "list"
    data: list[WebhookView]
    next_cursor: str | None


class SecretView(View):
    """A secret that a webhook's events are signed with."""

    secret: str = Field(examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    until: datetime | None = Field(description="signs until then; null: until it is changed")


class SecretList(View):
    """The secrets that sign now, the newest first."""

    webhook_id: str
    secrets: list[SecretView]

    @classmethod
    def of(cls, record: WebhookRecord, signing: SigningSecrets, now: float) -> Self:
        """The secrets of a stored webhook."""
        secrets = [SecretView(secret=signing.written(record.secret), until=None)]
        former, until = record.secret.former, record.former_until
        if former is not None and until is not None and until > now:
            secrets.append(SecretView(secret=signing.written(former), until=utc(until)))
        return cls(webhook_id=record.id, secrets=secrets)


class DeliveryView(View):
    """One event on its way to one webhook."""

    id: str
    object: Literal["delivery"] = "delivery"
    webhook_id: str
    event_id: str = Field(description="`webhook-id` of what is sent; the same at every try")
    event: EventType
    job_id: str | None
    state: DeliveryState
    attempts: int
    created_at: datetime
    next_attempt_at: datetime | None
    ended_at: datetime | None
    status: int | None = Field(description="of the last answer")
    error: str | None = Field(description="of the last attempt, when there was no answer")

    @classmethod
    def of(cls, record: DeliveryRecord) -> Self:
        """The view of a stored delivery."""
        return cls(
            id=record.id,
            webhook_id=record.webhook_id,
            event_id=record.event_id,
            event=record.event_type,
            job_id=record.job_id,
            state=record.state,
            attempts=record.attempts,
            created_at=utc(record.created_at),
            next_attempt_at=utc_or_none(record.next_at),
            ended_at=utc_or_none(record.done_at),
            status=record.status,
            error=record.error,
        )


class DeliveryPage(View):
    """Deliveries, newest first. Pass `next_cursor` as `cursor` for the following page."""

    object: Literal["list"] = "list"
    data: list[DeliveryView]
    next_cursor: str | None


class AttemptView(View):
    """One try."""

    number: int
    at: datetime
    duration_s: float
    status: int | None
    error: str | None

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        """The view of a stored attempt."""
        return cls(
            number=attempt.number,
            at=utc(attempt.at),
            duration_s=round(attempt.duration_s, 3),
            status=attempt.status,
            error=attempt.error,
        )


class DeliveryLog(View):
    """A delivery and every try of it."""

    delivery: DeliveryView
    attempts: list[AttemptView]

    @classmethod
    def log_of(cls, record: DeliveryRecord, attempts: Sequence[Attempt]) -> Self:
        """The view of a stored delivery and its attempts."""
        return cls(
            delivery=DeliveryView.of(record), attempts=[AttemptView.of(one) for one in attempts]
        )


class Replayed(View):
    """How many deliveries are sent again."""

    replayed: int
