"""Every command shows by example how it is used, and each example is a valid command line."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
import typer

from cli.main import build_app

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
