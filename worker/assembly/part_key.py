"""Part keys: the identity of a part's file. Equal keys mean that the same bytes would do. Pure.

Titles and names are no part of it, since no file holds them.
"""

import hashlib
import json
from collections.abc import Iterable

# To be raised with every change to stitching or encoding that is meant to be heard or seen in
# files: those from before are not reused then.
ASSEMBLY_VERSION = 1


def part_key(
    clips: Iterable[tuple[str | None, float]],
    *,
    format_: str,
    in_rate_hz: int,
    out_rate_hz: int,
    mark: str = "",
) -> str:
    """64 hex digits over a part's clips in order, and over how they become a file.

    A clip is the SHA-256 of its stored audio (None: nothing is heard) and the pause after it in
    seconds. `mark` is what the file says of the job it was made for: a mark of one job alone makes
    a key that no other job has.
    """
    digest = hashlib.sha256()
    head = (ASSEMBLY_VERSION, format_, in_rate_hz, out_rate_hz, mark)
    digest.update(json.dumps(head).encode())
    for sha256, pause_s in clips:
        digest.update(f"\n{sha256 or '-'} {pause_s!r}".encode())
    return digest.hexdigest()
