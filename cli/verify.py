"""`voxfarm verify`: a job's ledger rows, stored audio, files and manifest against each other.

For whoever runs the farm: it reads the ledger and the store themselves.
"""

import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli import options
from cli.exits import Exit, told
from cli.farm_settings import load_settings
from cli.progress import display
from cli.servers.seaweed import SeaweedServer

if TYPE_CHECKING:
    from shared.settings import Settings
    from worker.verifying.verdict import Verdict

SHOWN = 50  # lines of what is wrong; --json lists all

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id; see: voxfarm jobs list.")]


def verify_command(
    *,
    job_id: JobId,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    data: options.Data = None,
) -> None:
    """Prove that a job is whole: every character, every sample, every byte, or say what is wrong.

    Checks that the segments tile the text; that each one's stored audio has its hash and length;
    that every file has its hash, decodes to its length and holds each of its segments once, in
    order; and that the manifest says the same. Changes nothing.

    Reads the ledger and the store of the data folder's farm, which must be running, or those of
    VOXFARM_DATABASE_URL and VOXFARM_S3_*. Exit code 1 when something is wrong.

    **Examples**

        voxfarm verify JOB
        voxfarm verify JOB --json --data ./farm
    """
    with told(as_json=as_json):
        # no other command waits for these
        from shared.ledger.database import open_database  # noqa: PLC0415
        from shared.storage import S3Store  # noqa: PLC0415
        from worker.verifying.verdict import verify  # noqa: PLC0415

        settings = _with_store(load_settings(data_dir=data.absolute() if data else None))
        with (
            open_database(settings.sqlalchemy_url, pool_size=1) as database,
            display(quiet=quiet) as screen,
        ):
            verdict = verify(
                database,
                S3Store(settings),
                job_id,
                progress=lambda fraction: screen.show("verifying", fraction),
            )
        if as_json:
            found = {**dataclasses.asdict(verdict), "ok": verdict.ok}
            sys.stdout.write(json.dumps(found) + "\n")
        else:
            _print(verdict)
        if not verdict.ok:
            raise typer.Exit(Exit.FAILED)


def _with_store(settings: "Settings") -> "Settings":
    """The settings, with the store of the data folder's own farm unless another one is named."""
    own = SeaweedServer.access_of(settings.data_dir / "seaweedfs")
    if own is None or "VOXFARM_S3_ENDPOINT" in os.environ:
        return settings
    endpoint, access_key, secret_key = own
    return load_settings(
        **{
            **settings.model_dump(exclude={"s3_endpoint", "s3_access_key", "s3_secret_key"}),
            "s3_endpoint": endpoint,
            "s3_access_key": access_key,
            "s3_secret_key": secret_key,
            "s3_secure": False,
        }
    )


def _print(verdict: "Verdict") -> None:
    for line in verdict.wrong[:SHOWN]:
        typer.echo(f"wrong: {line}")
    if len(verdict.wrong) > SHOWN:
        typer.echo(f"... and {len(verdict.wrong) - SHOWN:,} more; --json lists all")
    looked = (
        f"{verdict.segments:,} segments, {verdict.stored_segments:,} with stored audio, "
        f"{verdict.files:,} files, {verdict.samples:,} samples"
    )
    ending = "OK" if verdict.ok else f"{len(verdict.wrong):,} things are wrong"
    typer.echo(f"{verdict.job_id} is {verdict.state}: {looked}: {ending}")
