"""The key by which the commands of this machine reach the farm of a data folder.

It lies in the folder (`local-key`, 0600) and is not in the ledger: who can read it could read the
ledger too. `voxfarm up` makes it and tells it to the API; it acts for the tenant `default`.
"""

from contextlib import suppress
from pathlib import Path

from shared.api_keys import new_key
from shared.secret_file import keep_secret

_NAME = "local-key"


def make_local_key(folder: Path) -> str:
    """Return the folder's key, made at the first call. Raises OSError."""
    return keep_secret(folder / _NAME, lambda: new_key().text)


def read_local_key(folder: Path) -> str | None:
    """Return the folder's key; None when there is none that we may read."""
    with suppress(OSError, ValueError):
        return (folder / _NAME).read_text(encoding="ascii").strip() or None
    return None
