"""Exit codes, and how an error becomes one clean message. Knows no command and no farm."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer
from rich.console import Console

from cli.errors import AlreadyRunningError, FarmAwayError, JobPartialError
from shared.errors import TransientError, UsageError, VoxfarmError


class Exit(IntEnum):
    """What the shell sees. Listed in `voxfarm --help` and docs/cli.md."""

    OK = 0
    FAILED = 1  # the job failed, or a check of `doctor` did
    USAGE = 2  # the command line, the text or a setting is wrong: change it
    UNREACHABLE = 3  # no farm answered
    ALREADY_RUNNING = 4  # `up` on a data folder that has a farm
    PARTIAL = 5  # files were delivered, with gaps that the manifest names
    INTERRUPTED = 130  # Ctrl-C or SIGTERM


EXIT_HELP = (
    "Exit codes: 0 done · 1 the job or a check failed · 2 wrong command, text or setting · "
    "3 no farm answers · 4 the data folder already has a farm · 5 delivered with gaps · "
    "130 interrupted."
)


def exit_code(error: VoxfarmError) -> Exit:
    """Return the exit code of an error, by its class alone."""
    match error:
        case AlreadyRunningError():
            return Exit.ALREADY_RUNNING
        case FarmAwayError() | TransientError():
            return Exit.UNREACHABLE
        case UsageError():
            return Exit.USAGE
        case JobPartialError():
            return Exit.PARTIAL
        case _:
            return Exit.FAILED


@contextmanager
def told(*, as_json: bool = False) -> Iterator[None]:
    """Turn an error of ours into a message on stderr (and JSON on stdout) and an exit code.

    Errors that are not ours pass through: they are faults of the program and keep their trace.
    """
    try:
        yield
    except VoxfarmError as error:
        code = exit_code(error)
        if as_json:
            sys.stdout.write(json.dumps({"error": _as_json(error, code)}, default=str) + "\n")
        errors = Console(stderr=True)
        errors.print("voxfarm:", style="bold red", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(code) from None
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _as_json(error: VoxfarmError, code: Exit) -> dict[str, object]:
    shown: dict[str, object] = {"message": str(error), "exit_code": int(code)}
    if isinstance(error, UsageError):
        shown |= {"code": error.code, **error.fields}
    return shown
