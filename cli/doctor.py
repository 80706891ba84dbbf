"""`voxfarm doctor`: says what is missing on this machine and the command that mends it."""

import dataclasses
import json
import sys

import typer
from rich.console import Console
from rich.text import Text

from cli import options
from cli.checks import Check, all_checks
from cli.exits import Exit, told
from cli.farm_settings import load_settings


def doctor_command(
    *,
    engine: options.Engines = None,
    as_json: options.AsJson = False,
    data: options.Data = None,
) -> None:
    """Look for everything that a farm on this machine needs. Nothing leaves the machine.

    Exit code 1 when something is missing.

    **Examples**

        voxfarm doctor
        voxfarm doctor --engine hibari-torch --json
    """
    with told(as_json=as_json):
        settings = load_settings(data_dir=data, engines=tuple(engine) if engine else None)
        console = Console()
        found = list[Check]()
        for check in all_checks(settings):
            found.append(check)
            if not as_json:
                _print(console, check)
        missing = [check for check in found if not check.ok]
        if as_json:
            shown = [dataclasses.asdict(check) for check in found]
            sys.stdout.write(json.dumps({"ok": not missing, "checks": shown}) + "\n")
        if missing:
            raise typer.Exit(Exit.FAILED)


def _print(console: Console, check: Check) -> None:
    mark = Text("ok     ", "green") if check.ok else Text("MISSING", "bold red")
    console.print(mark, Text(f"{check.name:<18}{check.detail}"), soft_wrap=True)
    if check.mend:
        console.print(Text(f"        mend: {check.mend}", "yellow"), soft_wrap=True)
