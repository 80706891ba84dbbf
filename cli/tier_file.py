"""The file that `voxfarm tune` writes: its place is tried before, and it is replaced as a whole."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from shared.errors import UsageError


def try_place(path: Path) -> None:
    """Make the file's folder and see that it can be written to; UsageError when it cannot."""
    with _named(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        with tempfile.TemporaryFile(dir=path.parent) as trial:
            trial.write(b"{}")


def write(path: Path, tiers: Mapping[str, Mapping[str, object]]) -> None:
    """Put the tiers there; whoever reads meanwhile sees the old file or the new. UsageError."""
    draft = path.with_name(path.name + ".new")
    with _named(path):
        draft.write_text(json.dumps(tiers, indent=2) + "\n", encoding="utf-8")
        draft.replace(path)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot write {path}: {reason}", code="bad-out") from error
