"""`voxfarm webhooks`: have addresses told of jobs, see what became of it, change secrets."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from cli import options
from cli.connect import connected
from cli.exits import Exit, told
from cli.farm_settings import load_settings
from cli.replies import Reply
from cli.webhook_client import DeliveryLog, Secrets, Webhooks
from cli.webhook_words import delivery_rows, log_lines, webhook_rows
from cli.words import columns
from shared.webhooks import SELECTABLE_EVENTS, DeliveryState

PATIENCE_S = 5.0

WebhookId = Annotated[
    str, typer.Argument(metavar="ID", help="The webhook's id; see: voxfarm webhooks list.")
]
DeliveryId = Annotated[
    str, typer.Argument(metavar="DELIVERY", help="See: voxfarm webhooks deliveries ID.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]

webhooks_app = typer.Typer(
    no_args_is_help=True, help="Have addresses told of jobs, and see what became of it."
)


@webhooks_app.command("add")
def add_command(
    *,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="An https URL.")],
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            help=f"May be given again: {', '.join(SELECTABLE_EVENTS)}. Default: each end of a job.",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Have an address told of every job, and show the secret that it is signed with.

    Without --event it is told of each end of a job. What is sent, and how a receiver checks that
    it is genuine: docs/how-to/webhooks.md.

    **Examples**

        voxfarm webhooks add https://example.org/voxfarm
        voxfarm webhooks add https://example.org/voxfarm --event job.completed --event job.failed
    """
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        webhook = webhooks.register(address, event or ())
        secrets = webhooks.secrets(webhook.id)
        if as_json:
            shown = secrets.model_dump(mode="json")["secrets"]
            _print_json({**webhook.model_dump(mode="json"), "secrets": shown})
        else:
            typer.echo(f"webhook {webhook.id} is told of {', '.join(webhook.events)}", err=True)
            _tell_secrets(secrets)


@webhooks_app.command("list")
def list_command(
    *,
    limit: Limit = 50,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """List webhooks, newest first: those told of every job, and those that jobs named."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        found = list(islice(webhooks.all(), limit))
        if as_json:
            _print_json([one.model_dump(mode="json") for one in found])
        elif found:
            _print_columns(webhook_rows(found))
        else:
            typer.echo("no webhooks")


@webhooks_app.command("deliveries")
def deliveries_command(
    *,
    webhook_id: WebhookId,
    state: Annotated[DeliveryState | None, typer.Option("--state", help="Only these.")] = None,
    limit: Limit = 50,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """List what was sent to a webhook, newest first."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        wanted = state.value if state else None
        found = list(islice(webhooks.deliveries(webhook_id, state=wanted), limit))
        if as_json:
            _print_json([one.model_dump(mode="json") for one in found])
        elif found:
            _print_columns(delivery_rows(found))
        else:
            typer.echo("no deliveries")


@webhooks_app.command("log")
def log_command(
    *,
    webhook_id: WebhookId,
    delivery_id: DeliveryId,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Show a delivery and every try of it."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        _tell_log(webhooks.log(webhook_id, delivery_id), as_json=as_json)


@webhooks_app.command("replay")
def replay_command(
    *,
    webhook_id: WebhookId,
    delivery_id: Annotated[
        str | None, typer.Argument(metavar="[DELIVERY]", help="Default: all that failed.")
    ] = None,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Send an event again, with its id and body; or all that failed."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        if delivery_id is not None:
            delivery = webhooks.replay(webhook_id, delivery_id)
            _tell(delivery, f"delivery {delivery.id} is {delivery.state.value}", as_json=as_json)
            return
        replayed = webhooks.replay_failed(webhook_id)
        if as_json:
            _print_json({"replayed": replayed})
        else:
            typer.echo(f"{replayed:,} deliveries are sent again")


@webhooks_app.command("test")
def try_command(
    *,
    webhook_id: WebhookId,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="For the answer.")
    ] = 20.0,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Send a test event and show what came of it; exit code 1 unless it was taken."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        log = webhooks.test(webhook_id, wait_s=wait)
        _tell_log(log, as_json=as_json)
        if log.delivery.state is not DeliveryState.DELIVERED:
            raise typer.Exit(Exit.FAILED)


@webhooks_app.command("secret")
def secret_command(
    *,
    webhook_id: WebhookId,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Show what a webhook's events are signed with."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        secrets = webhooks.secrets(webhook_id)
        if as_json:
            _print_json(secrets.model_dump(mode="json"))
        else:
            _tell_secrets(secrets)


@webhooks_app.command("rotate")
def rotate_command(
    *,
    webhook_id: WebhookId,
    overlap: Annotated[
        float | None,
        typer.Option(
            "--overlap",
            min=0,
            metavar="SECONDS",
            help="The former secret still signs for so long. Default: VOXFARM_WEBHOOK_OVERLAP_S.",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Change a webhook's secret and show both that sign for now, the new one first."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        secrets = webhooks.rotate(webhook_id, overlap_s=overlap)
        if as_json:
            _print_json(secrets.model_dump(mode="json"))
        else:
            _tell_secrets(secrets)


@webhooks_app.command("enable")
def enable_command(
    *,
    webhook_id: WebhookId,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Send to a webhook again."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        _tell(webhooks.enable(webhook_id), f"webhook {webhook_id} is enabled", as_json=as_json)


@webhooks_app.command("disable")
def disable_command(
    *,
    webhook_id: WebhookId,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Send nothing to a webhook until it is enabled; what comes meanwhile can be replayed."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        _tell(webhooks.disable(webhook_id), f"webhook {webhook_id} is disabled", as_json=as_json)


@webhooks_app.command("remove")
def remove_command(
    *,
    webhook_id: WebhookId,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Forget a webhook and what was sent to it."""
    with told(as_json=as_json), _webhooks(url, key, data) as webhooks:
        webhooks.remove(webhook_id)
        if as_json:
            _print_json({"id": webhook_id, "removed": True})
        else:
            typer.echo(f"webhook {webhook_id} is removed")


@contextmanager
def _webhooks(url: str | None, key: str | None, data: Path | None) -> Iterator[Webhooks]:
    folder = load_settings(data_dir=data).data_dir
    with connected(url=url, data_dir=folder, key=key, patience_s=PATIENCE_S) as connection:
        yield Webhooks(connection.client)


def _tell_log(log: DeliveryLog, *, as_json: bool) -> None:
    if as_json:
        _print_json(log.model_dump(mode="json"))
        return
    for line in log_lines(log):
        typer.echo(line)


def _tell_secrets(secrets: Secrets) -> None:
    for one in secrets.secrets:
        if one.until is not None:
            until = f"{one.until.astimezone():%Y-%m-%d %H:%M}"
            typer.echo(f"the next one signs until {until}", err=True)
        typer.echo(one.secret)


def _tell(reply: Reply, words: str, *, as_json: bool) -> None:
    if as_json:
        _print_json(reply.model_dump(mode="json"))
    else:
        typer.echo(words)


def _print_columns(rows: Iterator[tuple[str, ...]]) -> None:
    for line in columns(list(rows)):
        typer.echo(line)


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
