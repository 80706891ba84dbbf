"""The `voxfarm` command: its sub-commands put together. Each of them has its own module."""

import io
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from cli.doctor import doctor_command
from cli.exits import EXIT_HELP
from cli.jobs import jobs_app
from cli.keys import keys_app
from cli.render import render_command
from cli.tune import tune_command
from cli.up import up_command
from cli.verify import verify_command
from cli.voices import voices_app
from cli.webhooks import webhooks_app


def build_app() -> typer.Typer:
    """Put the command together."""
    app = typer.Typer(
        name="voxfarm",
        help="A text-to-speech render farm: whole books in, nothing lost.",
        epilog=EXIT_HELP,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_voxfarm)
    app.command("up")(up_command)
    app.command("render", epilog=EXIT_HELP)(render_command)
    app.add_typer(jobs_app, name="jobs")
    app.add_typer(keys_app, name="keys")
    app.add_typer(webhooks_app, name="webhooks")
    app.add_typer(voices_app, name="voices")
    app.command("tune")(tune_command)
    app.command("verify")(verify_command)
    app.command("doctor")(doctor_command)
    return app


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"voxfarm {version('voxfarm')}")
        raise typer.Exit


def _voxfarm(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass  # --version has its callback, and the sub-commands do the rest


def run() -> None:
    """Run the command line; the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a poor terminal, or a file name that is no text
    build_app()(prog_name="voxfarm")
