"""Brings deliverables here whole or not at all. Knows URLs, sizes and checksums, no jobs.

A file grows as NAME.part beside its target and is renamed once its length and SHA-256 are right.
A broken transfer goes on where it stopped, also after this program was killed; a part that turns
out wrong is thrown away once and fetched anew.
"""

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import httpx

from cli.errors import TransferError
from cli.http import RETRYABLE_STATUS, http_client
from cli.patience import Patience
from cli.replies import Deliverable

_CHUNK_BYTES = 256 * 1024
_WHOLE_TRIES = 2  # a wrong checksum is fetched anew once


def download(
    file: Deliverable,
    target: Path,
    *,
    fresh: Callable[[], Deliverable],
    on_bytes: Callable[[int], None] = lambda _: None,
    patience_s: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Fetch `file` to `target`. `fresh` gives the deliverable with a new URL when one expired.

    `on_bytes` hears the bytes of this file held so far. TransferError: it did not work; nothing
    is left behind unless the farm was merely away, when NAME.part waits for the next call.
    """
    part = target.with_name(target.name + ".part")
    transfer = _Transfer(file, part, fresh=fresh, on_bytes=on_bytes, sleep=sleep)
    try:
        with part.open("a+b") as sink:
            _lock(sink, part)
            for _ in range(_WHOLE_TRIES):
                transfer.fill(sink, Patience(patience_s, clock))
                if _digest(sink) == file.sha256:
                    sink.flush()
                    os.fsync(sink.fileno())
                    part.replace(target)
                    return
                sink.truncate(0)
        part.unlink(missing_ok=True)
        raise TransferError(f"{target.name} arrived with a wrong checksum, twice")
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise TransferError(_reason(target, file.bytes, error)) from None


class _Transfer:
    """One file's way here over as many connections as it takes."""

    def __init__(
        self,
        file: Deliverable,
        part: Path,
        *,
        fresh: Callable[[], Deliverable],
        on_bytes: Callable[[int], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._file = file
        self._part = part
        self._url = file.url
        self._fresh = fresh
        self._on_bytes = on_bytes
        self._sleep = sleep

    def fill(self, sink: BinaryIO, patience: Patience) -> None:
        """Add to `sink` until it has the file's length."""
        while (have := sink.seek(0, os.SEEK_END)) != self._file.bytes:
            if have > self._file.bytes:
                sink.truncate(0)
                continue
            why: str
            try:
                why = self._pull(sink, have)
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
            sink.flush()
            if sink.seek(0, os.SEEK_END) > have:
                patience.succeeded()
            if why:
                delay_s = patience.failed()
                if delay_s is None:
                    raise TransferError(
                        f"{self._file.name} could not be fetched ({why}); what came is kept in "
                        f"{self._part}, and the same command goes on from there"
                    )
                self._sleep(delay_s)

    def _pull(self, sink: BinaryIO, have: int) -> str:
        """One connection. Returns what went wrong, or nothing."""
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with (
            http_client(self._url) as http,
            http.stream("GET", self._url, headers=headers) as response,
        ):
            status = response.status_code
            if status == httpx.codes.FORBIDDEN:
                self._url = self._fresh().url
                return "the download link had expired"
            if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                sink.truncate(0)
                return "the farm's file is shorter than what was held"
            if status in RETRYABLE_STATUS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
                return f"status {status}"
            if not response.is_success:
                raise TransferError(
                    f"{self._file.name} could not be fetched: status {status} "
                    f"{response.reason_phrase}"
                )
            if have and status != httpx.codes.PARTIAL_CONTENT:
                sink.truncate(0)  # the server sends it all again
                have = 0
            for chunk in response.iter_raw(_CHUNK_BYTES):
                sink.write(chunk)
                have += len(chunk)
                if have > self._file.bytes:
                    sink.truncate(0)
                    raise TransferError(f"{self._file.name} is longer than the farm said")
                self._on_bytes(have)
        return "" if have == self._file.bytes else "the connection ended early"


def _lock(sink: BinaryIO, part: Path) -> None:
    try:
        fcntl.flock(sink, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TransferError(f"another download is writing {part}") from None
    if not part.exists() or os.fstat(sink.fileno()).st_ino != part.stat().st_ino:
        # the other one finished between our open and our lock: what we hold is its target now
        raise TransferError(f"another download has just finished {part}")


def _digest(sink: BinaryIO) -> str:
    digest = hashlib.sha256()
    sink.seek(0)
    while chunk := sink.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _reason(target: Path, size_bytes: int, error: OSError) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return (
            f"the disk of {target.parent or Path()} is full; {target.name} needs "
            f"{size_bytes / 1e6:,.1f} MB. Nothing was left behind; "
            "free some space and fetch it with: voxfarm jobs download"
        )
    return f"{target} cannot be written: {error.strerror or error}"
