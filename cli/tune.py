"""`voxfarm tune`: measures an engine over batch sizes and lengths and writes the tier file."""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli import options, tier_file
from cli.exits import told
from cli.farm_settings import load_settings
from cli.measured_engine import measured
from cli.tuning_report import bars, figures_table, shortfalls, tiers_table
from shared.errors import UsageError
from shared.settings import TIERS_FILE
from worker.tuning.choosing import Choice, choose, tiers_with
from worker.tuning.figures import Figures

_TIERS_VARIABLE = "VOXFARM_TIERS"


def tune_command(
    *,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Default: the default engine.")
    ] = None,
    batches: Annotated[
        str,
        typer.Option(
            metavar="N,N,...",
            help="Batch sizes to try. Default: 1,2,4,8 as far as the engine's slots go.",
            show_default=False,
        ),
    ] = "",
    lengths: Annotated[
        str,
        typer.Option(
            metavar="N,N,...",
            help="Text lengths to try, characters. Default: 40,120,240 and the engine's longest.",
            show_default=False,
        ),
    ] = "",
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

    The largest batches with which every tier keeps its first-audio target, sentences sound as they
    do alone, and that are faster than smaller ones. They bind this engine only; one that leaves
    nothing to choose is measured and nothing is written. Stop the farm first: it would share the
    machine.

    `max_wait_s` is left as it is: what a wait gains depends on how soon sentences follow one
    another through the queue, not on the engine.
    """
    with told(as_json=as_json):
        settings = load_settings(data_dir=data)
        name = engine or settings.default_engine
        path = out or settings.data_dir / TIERS_FILE
        sizes = _numbers(batches, "--batches")
        chars = _numbers(lengths, "--lengths")
        if not dry_run:
            tier_file.try_place(path)
        figures = list[Figures]()
        for each in measured(
            name,
            options=settings.engine_options.get(name, {}),
            batches=sizes,
            lengths=chars,
            repeats=repeats,
        ):
            figures.append(each)
            of = "mixed lengths" if each.mixed else f"{each.chars} characters"
            typer.echo(f"batch {each.batch} of {of}", err=True)
        choices = choose(figures, settings.tiers)
        only = _only_size(figures)
        now = load_settings(data_dir=data).tiers  # another engine may have been tuned meanwhile
        tiers = tiers_with(name, choices, now) if only is None else None
        written = tiers is not None and not dry_run
        if tiers is not None and written:
            tier_file.write(path, tiers)
        notes = list(_notes(name, only, path if written else None, own_place=out is None))
        if as_json:
            shown = {
                "engine": name,
                "figures": [f.model_dump() | {"x_real_time": f.x_real_time} for f in figures],
                "choices": [_as_json(choice) for choice in choices],
                "tiers": tiers,
                "file": str(path) if written else None,
                "notes": notes,
            }
            sys.stdout.write(json.dumps(shown) + "\n")
            return
        _show(name, figures, choices, notes)


def _show(engine: str, figures: list[Figures], choices: list[Choice], notes: list[str]) -> None:
    console = Console()
    console.print(figures_table(engine, figures))
    for line in bars(figures):
        console.print(line, soft_wrap=True, highlight=False)
    console.print(tiers_table(choices))
    for line in (*shortfalls(choices), *notes):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _numbers(text: str, option: str) -> list[int]:
    if not text:
        return []
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise UsageError(f"{option}: give numbers from 1 up, like 1,2,4", code="bad-option")
    return numbers


def _only_size(figures: list[Figures]) -> int | None:
    """The one batch size that was measured, if there was but one."""
    sizes = {each.batch for each in figures}
    return min(sizes) if len(sizes) == 1 else None


def _notes(engine: str, only: int | None, path: Path | None, *, own_place: bool) -> list[str]:
    if only is not None:
        return [f"engine {engine}: only batches of {only}: nothing to choose, no file is written"]
    if path is None:
        return []
    notes = [f"written to {path}, for the engine {engine}"]
    if own_place and os.environ.get(_TIERS_VARIABLE):
        notes.append(f"{_TIERS_VARIABLE} is set and comes before this file")
    return notes


def _as_json(choice: Choice) -> dict[str, object]:
    return dataclasses.asdict(choice) | {"keeps_target": choice.keeps_target}
