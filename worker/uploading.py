"""Uploads of unknown length: a small file goes in one request, a large one in parts.

Memory stays bounded: parts are held back only until it is clear that the file is not small.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from shared.storage import MultipartUpload, ObjectStore

Waiting = Callable[[], AbstractContextManager[None]]
SMALL_BYTES = 24 * 1024 * 1024  # a quarter of an hour of speech as FLAC


class Upload:
    """A file on its way to the store; nothing is visible before `complete`.

    `sha256` (hex) is known of a small file once it is complete: its parts may come in any order,
    and those of a large one are gone by the time that the first one is known.
    """

    def __init__(
        self, store: ObjectStore, key: str, content_type: str, waiting: Waiting = nullcontext
    ) -> None:
        self._store = store
        self._key = key
        self._content_type = content_type
        self._waiting = waiting
        self._held: dict[int, bytes] = {}
        self._parts: MultipartUpload | None = None
        self.sha256: str | None = None

    def put_part(self, number: int, data: bytes) -> None:
        """Take one part; numbers start at 1 and leave no gap, but may come in any order."""
        if self._parts is not None:
            self._send(self._parts, number, data)
            return
        self._held[number] = data
        if sum(map(len, self._held.values())) > SMALL_BYTES:
            self._parts = self._store.open_multipart(self._key, content_type=self._content_type)
            for held, part in self._held.items():
                self._send(self._parts, held, part)
            self._held.clear()

    def complete(self) -> None:
        """Make the file visible, whole."""
        if self._parts is not None:
            with self._waiting():
                self._parts.complete()
            return
        data = b"".join(self._held[number] for number in sorted(self._held))
        self.sha256 = hashlib.sha256(data).hexdigest()
        with self._waiting():
            self._store.put(self._key, data, content_type=self._content_type)

    def _send(self, parts: MultipartUpload, number: int, data: bytes) -> None:
        with self._waiting():
            parts.put_part(number, data)

    def abort(self) -> None:
        """Forget the file; never raises."""
        if self._parts is not None:
            self._parts.abort()


@contextmanager
def upload_to(
    store: ObjectStore, key: str, content_type: str, waiting: Waiting = nullcontext
) -> Iterator[Upload]:
    """An upload that is completed at the end of the block, or aborted on any error.

    `waiting` is entered around every request that sends data.
    """
    upload = Upload(store, key, content_type, waiting)
    try:
        yield upload
        upload.complete()
    except BaseException:
        upload.abort()
        raise
