"""Finished trials as lines of a file, so that a run may be stopped, sharded and gone on with.

Knows trials by cell and number only.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Journal:
    """The trials done so far, those of `others` included; new ones are appended to `path`."""

    def __init__(self, path: Path | None, others: Iterable[Path] = ()) -> None:
        self._path = path
        self._done = dict[tuple[str, int], Record]()
        for known in [*others, *([path] if path and path.exists() else [])]:
            lines = known.read_bytes().split(b"\n")
            for line in lines[:-1]:  # what a kill left of the last line is done again
                record = json.loads(line)
                self._done[record["cell"], record["n"]] = record
            if known == path and lines[-1]:
                known.write_bytes(b"\n".join([*lines[:-1], b""]))

    def has(self, cell: str, number: int) -> bool:
        """True when this trial is done."""
        return (cell, number) in self._done

    def add(self, cell: str, number: int, record: Record) -> None:
        """Write one finished trial down."""
        whole = {"cell": cell, "n": number, **record}
        self._done[cell, number] = whole
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(whole) + "\n")

    def by_cell(self) -> Mapping[str, list[Record]]:
        """All trials, by cell."""
        found = defaultdict[str, list[Record]](list)
        for (cell, _), record in sorted(self._done.items()):
            found[cell].append(record)
        return found
