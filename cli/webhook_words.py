"""How webhooks and their deliveries are written for people. Pure."""

from collections.abc import Iterable, Iterator

from cli.webhook_client import Delivery, DeliveryLog, Webhook


def webhook_rows(webhooks: Iterable[Webhook]) -> Iterator[tuple[str, ...]]:
    """Columns of a list of webhooks."""
    yield "ID", "TOLD OF", "STATE", "WAITING", "CREATED", "URL"
    for one in webhooks:
        yield (
            one.id,
            f"every job: {','.join(one.events)}" if one.every_job else "jobs that name it",
            one.standing if one.enabled else "disabled",
            f"{one.waiting:,}",
            f"{one.created_at.astimezone():%Y-%m-%d %H:%M}",
            one.url,
        )


def delivery_rows(deliveries: Iterable[Delivery]) -> Iterator[tuple[str, ...]]:
    """Columns of a list of deliveries."""
    yield "DELIVERY", "EVENT", "JOB", "STATE", "TRIES", "CREATED", "LAST"
    for one in deliveries:
        yield (
            one.id,
            one.event,
            one.job_id or "-",
            one.state.value,
            str(one.attempts),
            f"{one.created_at.astimezone():%Y-%m-%d %H:%M:%S}",
            _came_back(one.status, one.error),
        )


def _came_back(status: int | None, error: str | None) -> str:
    return error or (str(status) if status is not None else "-")


def log_lines(log: DeliveryLog) -> Iterator[str]:
    """A delivery and every try of it, a line each."""
    yield f"delivery {log.delivery.id} of {log.delivery.event} is {log.delivery.state.value}"
    for attempt in log.attempts:
        yield (
            f"{attempt.number:>3}  {attempt.at.astimezone():%Y-%m-%d %H:%M:%S}  "
            f"{attempt.duration_s:.2f} s  {_came_back(attempt.status, attempt.error)}"
        )
    if log.delivery.next_attempt_at is not None:
        yield f"next: {log.delivery.next_attempt_at.astimezone():%Y-%m-%d %H:%M:%S}"
