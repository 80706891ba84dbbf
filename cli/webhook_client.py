"""The part of the farm's API that is about webhooks, as typed calls. Prints nothing."""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import quote

from cli.client import PAGE, FarmClient
from cli.replies import Reply
from shared.webhooks import DeliveryState

_LOOK_EVERY_S = 0.3


class Webhook(Reply):
    """An address that is told of jobs."""

    id: str
    url: str
    every_job: bool
    events: tuple[str, ...] = ()
    enabled: bool
    disabled_reason: str | None = None
    standing: str
    failures: int = 0
    waiting: int = 0
    held_until: datetime | None = None
    created_at: datetime
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None


class WebhookPage(Reply):
    """One page of webhooks."""

    data: tuple[Webhook, ...]
    next_cursor: str | None = None


class Secret(Reply):
    """What events are signed with, and until when if not for good."""

    secret: str
    until: datetime | None = None


class Secrets(Reply):
    """The secrets that sign now, the newest first."""

    webhook_id: str
    secrets: tuple[Secret, ...]


class Delivery(Reply):
    """One event on its way to one webhook."""

    id: str
    webhook_id: str
    event_id: str
    event: str
    job_id: str | None = None
    state: DeliveryState
    attempts: int
    created_at: datetime
    next_attempt_at: datetime | None = None
    ended_at: datetime | None = None
    status: int | None = None
    error: str | None = None


class DeliveryPage(Reply):
    """One page of deliveries."""

    data: tuple[Delivery, ...]
    next_cursor: str | None = None


class Attempt(Reply):
    """One try."""

    number: int
    at: datetime
    duration_s: float
    status: int | None = None
    error: str | None = None


class DeliveryLog(Reply):
    """A delivery and every try of it."""

    delivery: Delivery
    attempts: tuple[Attempt, ...]


class Replayed(Reply):
    """How many deliveries are sent again."""

    replayed: int


class Nothing(Reply):
    """An answer without a body."""


class Webhooks:
    """A farm's webhooks, through a client of it. Errors are those of the client."""

    def __init__(self, farm: FarmClient) -> None:
        self._farm = farm

    def register(self, url: str, events: Sequence[str] = ()) -> Webhook:
        """Have a URL told of every job; without events, of each end."""
        wish: dict[str, object] = {"url": url}
        if events:
            wish["events"] = list(events)
        return self._farm.ask(Webhook, "POST", "/v1/webhooks", json=wish)

    def all(self) -> Iterator[Webhook]:
        """Every webhook, newest first, page by page."""
        params = {"limit": str(PAGE)}
        while True:
            page = self._farm.ask(WebhookPage, "GET", "/v1/webhooks", params=params)
            yield from page.data
            if not page.next_cursor:
                return
            params["cursor"] = page.next_cursor

    def get(self, webhook_id: str) -> Webhook:
        """Return one webhook."""
        return self._farm.ask(Webhook, "GET", _path(webhook_id))

    def remove(self, webhook_id: str) -> None:
        """Forget one."""
        self._farm.ask(Nothing, "DELETE", _path(webhook_id))

    def enable(self, webhook_id: str) -> Webhook:
        """Send there again."""
        return self._farm.ask(Webhook, "POST", f"{_path(webhook_id)}/enable")

    def disable(self, webhook_id: str) -> Webhook:
        """Send nothing there until it is enabled."""
        return self._farm.ask(Webhook, "POST", f"{_path(webhook_id)}/disable")

    def secrets(self, webhook_id: str) -> Secrets:
        """Return the secrets that sign now."""
        return self._farm.ask(Secrets, "GET", f"{_path(webhook_id)}/secret")

    def rotate(self, webhook_id: str, *, overlap_s: float | None = None) -> Secrets:
        """Change the secret. ConflictError: a change is under way already."""
        params = {} if overlap_s is None else {"overlap_s": str(overlap_s)}
        return self._farm.ask(Secrets, "POST", f"{_path(webhook_id)}/rotate", params=params)

    def deliveries(self, webhook_id: str, *, state: str | None = None) -> Iterator[Delivery]:
        """Every delivery, newest first, page by page."""
        params = {"limit": str(PAGE)} | ({"state": state} if state else {})
        while True:
            path = f"{_path(webhook_id)}/deliveries"
            page = self._farm.ask(DeliveryPage, "GET", path, params=params)
            yield from page.data
            if not page.next_cursor:
                return
            params["cursor"] = page.next_cursor

    def log(self, webhook_id: str, delivery_id: str) -> DeliveryLog:
        """Return a delivery with every try of it."""
        return self._farm.ask(DeliveryLog, "GET", _delivery_path(webhook_id, delivery_id))

    def replay(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Send one event again."""
        path = f"{_delivery_path(webhook_id, delivery_id)}/replay"
        return self._farm.ask(Delivery, "POST", path)

    def replay_failed(self, webhook_id: str) -> int:
        """Send again whatever failed. Returns how many."""
        return self._farm.ask(Replayed, "POST", f"{_path(webhook_id)}/replay").replayed

    def test(self, webhook_id: str, *, wait_s: float) -> DeliveryLog:
        """Send a test event and return what came of it, once it was tried or time is up."""
        sent = self._farm.ask(Delivery, "POST", f"{_path(webhook_id)}/test")
        until_s = time.monotonic() + wait_s
        while True:
            log = self.log(webhook_id, sent.id)
            if log.attempts or time.monotonic() >= until_s:
                return log
            time.sleep(_LOOK_EVERY_S)


def _path(webhook_id: str) -> str:
    return f"/v1/webhooks/{quote(webhook_id, safe='') or '-'}"


def _delivery_path(webhook_id: str, delivery_id: str) -> str:
    return f"{_path(webhook_id)}/deliveries/{quote(delivery_id, safe='') or '-'}"
