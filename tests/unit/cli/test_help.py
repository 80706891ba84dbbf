"""What `--help` shows of every command."""

from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from cli.main import build_app

RULE = "**Examples**\n"


def with_examples() -> Iterator[tuple[list[str], list[str]]]:
    """(words of a command, the lines of its examples)."""
    waiting: list[tuple[list[str], object]] = [([], typer.main.get_command(build_app()))]
    while waiting:
        words, command = waiting.pop()
        for name, inner in getattr(command, "commands", {}).items():
            waiting.append(([*words, name], inner))
        _, found, examples = (getattr(command, "help", "") or "").partition(RULE)
        if found:
            yield words, [line.strip() for line in examples.splitlines() if line.strip()]


def test_there_are_commands_with_examples() -> None:
    assert len(list(with_examples())) >= 4


@pytest.mark.parametrize(("words", "examples"), list(with_examples()))
def test_each_example_has_a_line_of_its_own(words: list[str], examples: list[str]) -> None:
    shown = CliRunner().invoke(
        build_app(), [*words, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    )
    lines = [line.strip() for line in shown.stdout.splitlines()]
    for example in examples:
        assert example in lines, shown.stdout
