"""Has an engine measured in a process of its own, which dies with this one. Knows no tier."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from shared.errors import SetupError, UsageError
from worker.tuning.figures import Figures


def measured(
    engine: str,
    *,
    options: Mapping[str, object],
    batches: Sequence[int],
    lengths: Sequence[int],
    repeats: int,
) -> Iterator[Figures]:
    """Figures of the engine as they come; without batches or lengths, of the usual ones.

    Raises UsageError when what was asked for is impossible, SetupError when the engine fails.
    """
    order = json.dumps(
        {
            "options": dict(options),
            "batches": list(batches),
            "lengths": list(lengths),
            "repeats": repeats,
            "parent": os.getpid(),
        }
    )
    command = [sys.executable, "-P", "-m", "worker.tuning", engine, order]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield from _read(engine, process)
        finally:
            process.kill()


def _read(engine: str, process: subprocess.Popen[str]) -> Iterator[Figures]:
    for line in process.stdout or ():
        told_of = json.loads(line)
        if "wrong" in told_of:
            raise UsageError(told_of["wrong"], code=told_of["code"], **told_of["fields"])
        if "error" in told_of:
            raise SetupError(f"engine {engine}: {told_of['error']}. See: voxfarm doctor")
        if "done" in told_of:
            return
        yield Figures.model_validate(told_of)
    raise SetupError(f"engine {engine} crashed while it was measured (exit {process.wait()})")
