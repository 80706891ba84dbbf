"""`voxfarm tune`: measures an engine over batch sizes and lengths and writes the tier file."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cli import options
from cli.exits import told
from cli.farm_settings import load_settings
from cli.tuning_report import bars, figures_table, shortfalls, tiers_table
from shared.errors import SetupError, UsageError
from shared.settings import TIERS_FILE
from worker.tuning.choosing import choose, tiers_with
from worker.tuning.figures import Figures


def tune_command(
    *,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Default: the default engine.")
    ] = None,
    batches: Annotated[str, typer.Option(help="Batch sizes to try.")] = "1,2,4,8",
    lengths: Annotated[
        str, typer.Option(help="Text lengths to try, in characters.")
    ] = "40,120,240",
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each; medians count.")] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Tier file to write. Default: tiers.json in the data folder, which `up` reads.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure, but write no file.")] = False,
    as_json: options.AsJson = False,
    data: options.Data = None,
) -> None:
    """Measure an engine on this machine and choose each tier's batch by it.

    For each tier: the largest batch that keeps its first-audio target, sounds as its sentences do
    alone, and is faster than a smaller one. Stop the farm first: it would share the machine.
    """
    with told(as_json=as_json):
        settings = load_settings(data_dir=data)
        name = engine or settings.default_engine
        plan = {
            "options": settings.engine_options.get(name, {}),
            "batches": _numbers(batches, "--batches"),
            "lengths": _numbers(lengths, "--lengths"),
            "repeats": repeats,
        }
        measured = list[Figures]()
        for figures in _measured(name, plan):
            measured.append(figures)
            typer.echo(f"batch {figures.batch} of {figures.chars} characters", err=True)
        choices = choose(measured, settings.tiers)
        tiers = tiers_with(name, choices, settings.tiers)
        path = None if dry_run else _write(out or settings.data_dir / TIERS_FILE, tiers)
        if as_json:
            shown = {
                "engine": name,
                "figures": [f.model_dump() | {"x_real_time": f.x_real_time} for f in measured],
                "choices": [dataclasses.asdict(choice) for choice in choices],
                "tiers": tiers,
                "file": None if path is None else str(path),
            }
            sys.stdout.write(json.dumps(shown) + "\n")
            return
        console = Console()
        console.print(figures_table(name, measured))
        for line in bars(measured):
            console.print(line, soft_wrap=True, highlight=False)
        console.print(tiers_table(choices))
        for line in shortfalls(choices):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        if path is not None:
            console.print(f"written to {path}", soft_wrap=True)


def _numbers(text: str, option: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise UsageError(f"{option}: give numbers like 1,2,4", code="bad-option")
    return numbers


def _measured(engine: str, plan: dict[str, Any]) -> Iterator[Figures]:
    command = [sys.executable, "-P", "-m", "worker.tuning", engine, json.dumps(plan)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield from _read(engine, process)
        finally:
            process.kill()


def _read(engine: str, process: subprocess.Popen[str]) -> Iterator[Figures]:
    for line in process.stdout or ():
        told_of = json.loads(line)
        if "error" in told_of:
            raise SetupError(f"engine {engine}: {told_of['error']}. See: voxfarm doctor")
        if "done" in told_of:
            return
        yield Figures.model_validate(told_of)
    raise SetupError(f"engine {engine} crashed while it was measured (exit {process.wait()})")


def _write(path: Path, tiers: dict[str, dict[str, object]]) -> Path:
    draft = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(tiers, indent=2) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", code="bad-out") from error
    return path
