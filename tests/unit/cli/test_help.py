"""What `--help` shows: every command's examples, valid and each on a line of its own."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
import typer
from typer.testing import CliRunner

from cli.main import build_app

RULE = "**Examples**\n"
ELSEWHERE = {"tune", "webhooks"}  # docs/cli.md and docs/how-to/webhooks.md show those


def commands(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        yield from commands(child, *path, name)


ALL = dict(commands(typer.main.get_command(build_app())))


@pytest.mark.parametrize("path", [path for path in ALL if path[0] not in ELSEWHERE], ids=" ".join)
def test_a_command_shows_examples_that_it_understands(path: tuple[str, ...]) -> None:
    _, found, examples = (ALL[path].help or "").partition("**Examples**")
    assert found
    shown = re.findall(r"voxfarm [^|&\n]*", examples)
    assert shown
    for line in shown:
        words = shlex.split(line, comments=True)[1:]
        named = next(p for p in ALL if tuple(words[: len(p)]) == p)
        ALL[named].make_context("voxfarm", words[len(named) :])  # raises what a user would read


@pytest.mark.parametrize("path", [p for p in ALL if RULE in (ALL[p].help or "")], ids=" ".join)
def test_each_example_has_a_line_of_its_own(path: tuple[str, ...]) -> None:
    examples = (ALL[path].help or "").partition(RULE)[2]
    shown = CliRunner().invoke(
        build_app(), [*path, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    )
    lines = [line.strip() for line in shown.stdout.splitlines()]
    for example in filter(None, map(str.strip, examples.splitlines())):
        assert example in lines, shown.stdout
