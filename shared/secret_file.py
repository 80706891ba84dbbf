"""A secret kept in a file of the data folder, readable by its user alone. Knows no use for it."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def keep_secret(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in the file; at the first call it is made. Raises OSError.

    Of racing processes exactly one writes it, and all return the same.
    """
    if not path.exists():
        _create(path, make())
    return path.read_text(encoding="ascii").strip()


def _create(path: Path, text: str) -> None:
    """Write a whole file and link it into place, so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
