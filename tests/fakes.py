"""In-memory stand-ins for our ports. The contract suites run on them and on the real servers."""

from collections.abc import Iterable, Iterator

from shared.errors import NotFoundError, StoreError
from shared.storage import ObjectStat


class FakeStore:
    """An ObjectStore in a dictionary."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: list[FakeMultipart] = []

    def ensure_bucket(self) -> None:
        return

    def put(self, key: str, data: bytes, *, content_type: str) -> None:
        del content_type
        self.objects[key] = data

    def get(self, key: str, offset_bytes: int = 0, size_bytes: int | None = None) -> bytes:
        if key not in self.objects:
            raise NotFoundError(f"no such object: {key}", code="object-not-found")
        end = None if size_bytes is None else offset_bytes + size_bytes
        return self.objects[key][offset_bytes:end]

    def stream(self, key: str) -> Iterator[bytes]:
        data = self.get(key)
        for start in range(0, len(data), 1000):
            yield data[start : start + 1000]

    def stat(self, key: str) -> ObjectStat | None:
        data = self.objects.get(key)
        return None if data is None else ObjectStat(len(data), str(hash(data)))

    def keys(self, prefix: str) -> Iterator[str]:
        yield from sorted(key for key in self.objects if key.startswith(prefix))

    def delete(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            self.objects.pop(key, None)

    def open_multipart(self, key: str, *, content_type: str) -> "FakeMultipart":
        del content_type
        upload = FakeMultipart(self, key)
        self.uploads.append(upload)
        return upload

    def abort_uploads(self, prefix: str) -> int:
        begun = [upload for upload in self.uploads if upload.key.startswith(prefix)]
        for upload in begun:
            upload.abort()
        return len(begun)

    def presigned_get(self, key: str, *, expires_s: int, filename: str, content_type: str) -> str:
        return f"memory://{key}?for={expires_s}&as={filename}&type={content_type}"


class FakeMultipart:
    """A multipart upload into a FakeStore."""

    def __init__(self, store: FakeStore, key: str) -> None:
        self._store = store
        self.key = key
        self.parts: dict[int, bytes] = {}

    def put_part(self, number: int, data: bytes) -> None:
        self.parts[number] = data

    def complete(self) -> None:
        if self not in self._store.uploads:
            raise StoreError("no such upload")
        self._store.objects[self.key] = b"".join(self.parts[n] for n in sorted(self.parts))
        self._store.uploads.remove(self)

    def abort(self) -> None:
        self.parts.clear()
        if self in self._store.uploads:
            self._store.uploads.remove(self)
