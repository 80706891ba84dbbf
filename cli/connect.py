"""Finds the farm a command is to talk to: by URL, in the data folder, or started for the call."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.client import FarmClient
from cli.data_folder import DataFolder, FarmAddress
from cli.embedded import EmbeddedFarm
from cli.errors import FarmAwayError
from cli.local_key import read_local_key


@dataclass(slots=True)
class Connection:
    """An open client. Set `in_haste` to leave without waiting for an embedded farm to stop."""

    client: FarmClient
    embedded: bool
    start_s: float
    in_haste: bool = False


@contextmanager
def connected(
    *,
    url: str | None,
    data_dir: Path,
    patience_s: float,
    key: str | None = None,
    embedded_options: Sequence[str] | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> Iterator[Connection]:
    """Talk to the farm at `url`, else to that of `data_dir`, else to one started for the call.

    `embedded_options` are what `voxfarm up` is told; None means that no farm is started and
    FarmAwayError is raised. `on_start` is called before one is started, and before anything is
    written: what it raises is the end of it. Without a `key` that of the data folder is used, but
    only for the farm that runs there.
    """
    if url:
        with FarmClient(url, key=key, patience_s=patience_s) as client:
            yield Connection(client, embedded=False, start_s=0.0)
        return
    folder = DataFolder(data_dir.absolute())
    if embedded_options is None:
        _found(folder)  # before anything is written there
    elif folder.running() is None:
        on_start()
    folder.prepare()
    began_s = time.monotonic()
    farm = EmbeddedFarm(folder, embedded_options or ())
    connection: Connection | None = None
    try:
        with ExitStack() as stack:
            stack.enter_context(folder.using())
            if embedded_options is None:
                address = _found(folder)
            elif (here := folder.running()) is not None:
                address = here
            else:
                address = farm.ensure()
            revive = address.embedded and embedded_options is not None
            client = FarmClient(
                address.url,
                key=key or read_local_key(folder.path),
                patience_s=patience_s,
                locate=(lambda: farm.ensure().url) if revive else (lambda: _found(folder).url),
            )
            stack.enter_context(client)
            start_s = time.monotonic() - began_s
            connection = Connection(client, embedded=address.embedded, start_s=start_s)
            yield connection
    finally:
        if connection is None or not connection.in_haste:
            farm.leave()


def _found(folder: DataFolder) -> FarmAddress:
    address = folder.running()
    if address is None:
        raise FarmAwayError(
            f"no farm runs in {folder.path}; start one with: voxfarm up, "
            "or name one with --url or VOXFARM_URL"
        )
    return address
