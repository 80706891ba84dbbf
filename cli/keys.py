"""`voxfarm keys`: make, list and revoke API keys. Works on the ledger itself, no farm need run."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli import options
from cli.exits import told
from cli.farm_settings import load_settings
from cli.words import columns
from shared.api_keys import new_key
from shared.errors import UsageError
from shared.tenants import DEFAULT_TENANT, Quota, check_tenant
from shared.tiers import Tier

if TYPE_CHECKING:
    from pathlib import Path

    from shared.ledger.database import Database
    from shared.ledger.keys import KeyRecord

MAX_NAME_CHARS = 100

Tenant = Annotated[str, typer.Option("--tenant", help="Whose jobs the key sees and makes.")]
Name = Annotated[str, typer.Option("--name", help="A note for you: who has the key.")]
Tiers = Annotated[
    list[Tier] | None,
    typer.Option(
        "--tier",
        help="Tier that jobs may have; may be given again. Default: all.",
        show_default=False,
    ),
]
QuotaAudio = Annotated[
    float | None,
    typer.Option(
        "--quota-audio",
        min=1,
        metavar="SECONDS",
        help="Most audio that the tenant may have waiting. Default: no limit.",
        show_default=False,
    ),
]
QuotaJobs = Annotated[
    int | None,
    typer.Option(
        "--quota-jobs",
        min=1,
        metavar="N",
        help="Most jobs that the tenant may have alive. Default: no limit.",
        show_default=False,
    ),
]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id; see: voxfarm keys list.")]
All = Annotated[bool, typer.Option("--all", help="Show revoked keys too.")]

keys_app = typer.Typer(no_args_is_help=True, help="Make, list and revoke API keys.")


@keys_app.command("create")
def create_command(
    *,
    tenant: Tenant = DEFAULT_TENANT,
    name: Name = "",
    tier: Tiers = None,
    quota_audio: QuotaAudio = None,
    quota_jobs: QuotaJobs = None,
    as_json: options.AsJson = False,
    data: options.Data = None,
) -> None:
    """Make a key and show it, this once. As soon as there is one, the API wants one.

    The ledger is that of the data folder, or VOXFARM_DATABASE_URL.

    **Examples**

        voxfarm keys create --tenant news --tier rush --tier standard --quota-jobs 200
        voxfarm keys create --tenant books --tier bulk --quota-audio 360000
    """
    with told(as_json=as_json), _ledger(data) as database:
        from shared.ledger import keys  # noqa: PLC0415 - no other command waits for SQLAlchemy

        key = new_key()
        tiers = tuple(tier or Tier)
        quota = Quota(audio_s=quota_audio, jobs=quota_jobs)
        checked_name, checked_tenant = _checked_name(name), check_tenant(tenant)
        database.transact(
            lambda conn: keys.create(
                conn,
                key.id,
                key.sha256,
                tenant=checked_tenant,
                name=checked_name,
                tiers=tiers,
                quota=quota,
            )
        )
        if as_json:
            _print_json({"id": key.id, "key": key.text, "tenant": tenant})
        else:
            typer.echo(f"key {key.id} of tenant {tenant}; it is shown only now", err=True)
            typer.echo(key.text)


@keys_app.command("list")
def list_command(
    *, revoked: All = False, as_json: options.AsJson = False, data: options.Data = None
) -> None:
    """List keys, without the keys themselves.

    An id is what `voxfarm keys revoke` takes.

    **Examples**

        voxfarm keys list
        voxfarm keys list --json
    """
    with told(as_json=as_json), _ledger(data) as database:
        from shared.ledger import keys  # noqa: PLC0415

        records = database.read(lambda conn: keys.listed(conn, revoked=revoked))
        if as_json:
            _print_json([_as_json(record) for record in records])
        elif records:
            for line in columns(list(_rows(records))):
                typer.echo(line)
        else:
            typer.echo("no keys")


@keys_app.command("revoke")
def revoke_command(
    *, key_id: KeyId, as_json: options.AsJson = False, data: options.Data = None
) -> None:
    """End a key for good, within seconds. Its jobs go on.

    **Examples**

        voxfarm keys revoke ID
    """
    with told(as_json=as_json), _ledger(data) as database:
        from shared.ledger import keys  # noqa: PLC0415

        ended = database.transact(lambda conn: keys.revoke(conn, key_id))
        if as_json:
            _print_json({"id": key_id, "revoked": True})
        else:
            typer.echo(f"key {key_id} is revoked" if ended else f"key {key_id} was revoked before")


@contextmanager
def _ledger(data: "Path | None") -> "Iterator[Database]":
    """Open the ledger at this version's schema, made if absent."""
    from shared.ledger.database import open_database  # noqa: PLC0415
    from shared.ledger.migrate import migrate  # noqa: PLC0415

    settings = load_settings(data_dir=data.absolute() if data else None)
    if not settings.database_url:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open_database(settings.sqlalchemy_url, pool_size=1) as database:
        migrate(database)
        yield database


def _checked_name(name: str) -> str:
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise UsageError(
            f"a key's name is one line of at most {MAX_NAME_CHARS} characters", code="bad-name"
        )
    return name


def _rows(records: "list[KeyRecord]") -> Iterator[tuple[str, ...]]:
    yield "ID", "TENANT", "TIERS", "AUDIO", "JOBS", "CREATED", "STATE", "NAME"
    for record in records:
        yield (
            record.id,
            record.tenant,
            ",".join(tier for tier in Tier if tier in record.tiers),
            "-" if record.quota.audio_s is None else f"{record.quota.audio_s:,.0f} s",
            "-" if record.quota.jobs is None else f"{record.quota.jobs:,}",
            f"{datetime.fromtimestamp(record.created_at).astimezone():%Y-%m-%d %H:%M}",
            "counts" if record.revoked_at is None else "revoked",
            record.name,
        )


def _as_json(record: "KeyRecord") -> dict[str, object]:
    return {
        "id": record.id,
        "tenant": record.tenant,
        "name": record.name,
        "tiers": [tier.value for tier in Tier if tier in record.tiers],
        "quota_audio_s": record.quota.audio_s,
        "quota_jobs": record.quota.jobs,
        "created_at": record.created_at,
        "revoked_at": record.revoked_at,
    }


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
