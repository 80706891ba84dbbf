"""The object store: a small port, and its one implementation on the S3 protocol.

Knows keys and bytes; what lies under a key is `object_keys`' and the ledger's business.
"""

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from urllib.parse import quote
from xml.etree.ElementTree import ParseError

import urllib3
from minio import Minio
from minio.datatypes import Part
from minio.deleteobjects import DeleteObject
from minio.error import MinioException, S3Error

from shared.errors import NotFoundError, SetupError, StoreError
from shared.settings import Settings
from shared.store_http import store_http

STREAM_BYTES = 1024 * 1024
_LEAST_PART_BYTES = 5 * 1024 * 1024  # by the rules of S3
CONNECTIONS = 20  # more than any process has threads that talk to the store
_REFUSED = frozenset(
    {
        "AccessDenied",
        "InvalidAccessKeyId",
        "InvalidBucketName",
        "NoSuchBucket",
        "SignatureDoesNotMatch",
    }
)


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """What the store says of an object."""

    size_bytes: int
    etag: str


class MultipartUpload(Protocol):
    """An object being written in parts, in any order; nothing is visible before `complete`."""

    def put_part(self, number: int, data: bytes) -> None:
        """Store one part; numbers start at 1."""
        ...

    def complete(self) -> None:
        """Make the object visible, whole."""
        ...

    def abort(self) -> None:
        """Forget the upload; never raises, since it runs when something else has failed."""
        ...


class ObjectStore(Protocol):
    """Immutable objects under keys. Every method may raise StoreError (try again later)."""

    def ensure_bucket(self) -> None:
        """Make the bucket unless it is there. Raises SetupError when refused."""
        ...

    def put(self, key: str, data: bytes, *, content_type: str) -> None:
        """Store an object in one request."""
        ...

    def get(self, key: str, offset_bytes: int = 0, size_bytes: int | None = None) -> bytes:
        """An object, or that many bytes of it; fewer where it ends. Raises NotFoundError."""
        ...

    def stream(self, key: str) -> Iterator[bytes]:
        """An object piece by piece. Raises NotFoundError."""
        ...

    def stat(self, key: str) -> ObjectStat | None:
        """Size and etag, or None when there is no such object."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys that begin with the prefix."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing ones are no error."""
        ...

    def open_multipart(self, key: str, *, content_type: str) -> MultipartUpload:
        """Begin an upload of unknown length."""
        ...

    def abort_uploads(self, prefix: str) -> int:
        """Forget uploads that somebody began and did not complete. Returns how many."""
        ...

    def presigned_get(self, key: str, *, expires_s: int, filename: str, content_type: str) -> str:
        """A URL that anyone may read the object by for a while; made without asking the store."""
        ...


class S3Store:
    """ObjectStore on S3, by the minio SDK: MinIO, SeaweedFS, AWS and others."""

    def __init__(self, settings: Settings) -> None:
        self._bucket = settings.s3_bucket
        self._client = _client(settings, settings.s3_endpoint)
        self._signer = _client(settings, settings.s3_public_endpoint or settings.s3_endpoint)

    def ensure_bucket(self) -> None:
        """See ObjectStore."""
        with _store_errors():
            if self._client.bucket_exists(self._bucket):
                return
            try:
                self._client.make_bucket(self._bucket)
            except S3Error as error:
                if error.code not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
                    raise

    def put(self, key: str, data: bytes, *, content_type: str) -> None:
        """See ObjectStore."""
        with _store_errors():
            self._client.put_object(
                self._bucket,
                key,
                io.BytesIO(data),
                len(data),
                content_type=content_type,
                part_size=max(len(data), _LEAST_PART_BYTES),  # else the SDK cuts it
            )

    def get(self, key: str, offset_bytes: int = 0, size_bytes: int | None = None) -> bytes:
        """See ObjectStore."""
        return b"".join(self._pieces(key, offset_bytes, size_bytes))

    def stream(self, key: str) -> Iterator[bytes]:
        """See ObjectStore."""
        return self._pieces(key, 0, None)

    def _pieces(self, key: str, offset_bytes: int, size_bytes: int | None) -> Iterator[bytes]:
        with _store_errors():
            try:
                response = self._client.get_object(
                    self._bucket, key, offset=offset_bytes, length=size_bytes or 0
                )
            except S3Error as error:
                if error.code != "InvalidRange":
                    raise
                return  # it ends before that
            try:
                yield from response.stream(STREAM_BYTES)
            finally:
                response.close()
                response.release_conn()

    def stat(self, key: str) -> ObjectStat | None:
        """See ObjectStore."""
        try:
            with _store_errors():
                found = self._client.stat_object(self._bucket, key)
        except NotFoundError:
            return None
        return ObjectStat(found.size or 0, found.etag or "")

    def keys(self, prefix: str) -> Iterator[str]:
        """See ObjectStore."""
        with _store_errors():
            for found in self._client.list_objects(self._bucket, prefix, recursive=True):
                if found.object_name is not None:
                    yield found.object_name

    def delete(self, keys: Iterable[str]) -> None:
        """See ObjectStore."""
        with _store_errors():
            for error in self._client.remove_objects(self._bucket, map(DeleteObject, keys)):
                if error.code != "NoSuchKey":
                    raise StoreError(f"the store would not delete {error.name}: {error.code}")

    def open_multipart(self, key: str, *, content_type: str) -> MultipartUpload:
        """See ObjectStore."""
        with _store_errors():
            upload_id = self._client._create_multipart_upload(  # noqa: SLF001 - the SDK's own seam
                self._bucket, key, {"Content-Type": content_type}
            )
        return _S3Multipart(self._client, self._bucket, key, upload_id)

    def abort_uploads(self, prefix: str) -> int:
        """See ObjectStore. A thousand at most: whoever sweeps comes again."""
        with _store_errors():
            begun = self._client._list_multipart_uploads(  # noqa: SLF001 - the SDK's own seam
                self._bucket, prefix=prefix
            )
            for upload in begun.uploads:
                if upload.upload_id is None:
                    raise StoreError("the store lists an upload that it does not name")
                self._client._abort_multipart_upload(  # noqa: SLF001
                    self._bucket, upload.object_name, upload.upload_id
                )
        return len(begun.uploads)

    def presigned_get(self, key: str, *, expires_s: int, filename: str, content_type: str) -> str:
        """See ObjectStore."""
        return self._signer.presigned_get_object(
            self._bucket,
            key,
            expires=timedelta(seconds=expires_s),
            response_headers={
                "response-content-disposition": content_disposition(filename),
                "response-content-type": content_type,
            },
        )


class _S3Multipart:
    def __init__(self, client: Minio, bucket: str, key: str, upload_id: str) -> None:
        self._client = client
        self._bucket = bucket
        self._key = key
        self._upload_id = upload_id
        self._etags: dict[int, str] = {}

    def put_part(self, number: int, data: bytes) -> None:
        with _store_errors():
            self._etags[number] = self._client._upload_part(  # noqa: SLF001
                self._bucket, self._key, data, None, self._upload_id, number
            )

    def complete(self) -> None:
        parts = [Part(number, etag) for number, etag in sorted(self._etags.items())]
        with _store_errors():
            done = self._client._complete_multipart_upload(  # noqa: SLF001
                self._bucket, self._key, self._upload_id, parts
            )
        if not done.etag:  # S3 may say 200 first and find an error later
            raise StoreError("the store could not complete an upload")

    def abort(self) -> None:
        try:
            with _store_errors():
                self._client._abort_multipart_upload(  # noqa: SLF001
                    self._bucket, self._key, self._upload_id
                )
        except (StoreError, NotFoundError, SetupError):
            return  # what is left of it costs only space, and the store may expire it


def _client(settings: Settings, endpoint: str) -> Minio:
    return Minio(
        endpoint,
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key.get_secret_value(),
        secure=settings.s3_secure,
        region=settings.s3_region,  # named, so that signing never asks the store for it
        http_client=store_http(connections=CONNECTIONS),
    )


def content_disposition(filename: str) -> str:
    """An ASCII header value that names the file, whatever its letters (RFC 6266, RFC 8187)."""
    plain = re.sub(r'[^ -~]|["\\%]', "_", filename)
    exact = "" if plain == filename else f"; filename*=UTF-8''{quote(filename, safe='')}"
    return f'attachment; filename="{plain}"{exact}'


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn the SDK's errors into ours, by class and S3 code."""
    try:
        yield
    except S3Error as error:
        if error.code == "NoSuchKey":
            raise NotFoundError("no such object", code="object-not-found") from error
        if error.code in _REFUSED:
            raise SetupError(
                f"the object store refuses us: {error.code}"
                f"{f' ({error.bucket_name})' if error.bucket_name else ''}; check VOXFARM_S3_*"
            ) from error
        raise StoreError(f"the object store failed: {error.code}") from error
    except (MinioException, ParseError, UnicodeDecodeError) as error:  # not S3's language
        raise StoreError(f"the object store failed: {type(error).__name__}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise StoreError(f"the object store is away: {type(error).__name__}") from error
