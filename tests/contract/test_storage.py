"""The object store's contract: on the fake, and on a real S3 server."""

import time
from datetime import UTC, datetime

import httpx
import pytest

from shared.errors import NotFoundError, SetupError, StoreError
from shared.settings import Settings
from shared.storage import ObjectStore, S3Store
from tests.fakes import FakeStore

MEBIBYTE = 1024 * 1024


@pytest.fixture(params=["fake", "s3"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "fake":
        return FakeStore()
    store = S3Store(request.getfixturevalue("s3_settings"))
    store.ensure_bucket()
    return store


def test_what_is_put_is_got_back_whole_and_in_pieces(store: ObjectStore) -> None:
    data = bytes(range(256)) * 5000
    store.put("a/b", data, content_type="audio/flac")
    assert store.get("a/b") == data
    assert b"".join(store.stream("a/b")) == data
    found = store.stat("a/b")
    assert found is not None
    assert found.size_bytes == len(data)


def test_a_range_of_an_object_is_read_alone_and_ends_where_the_object_ends(
    store: ObjectStore,
) -> None:
    data = bytes(range(256)) * 4096
    store.put("a/range", data, content_type="audio/flac")
    assert store.get("a/range", 1000, 70_000) == data[1000:71_000]
    assert store.get("a/range", 0, 1) == data[:1]
    assert store.get("a/range", 1_000_000) == data[1_000_000:]
    assert store.get("a/range", len(data) - 5, 100) == data[-5:]
    assert store.get("a/range", len(data), 5) == store.get("a/range", len(data) + 9, 5) == b""
    with pytest.raises(NotFoundError):
        store.get("a/nothing", 5, 5)


def test_a_missing_object_is_said_to_be_missing(store: ObjectStore) -> None:
    assert store.stat("none") is None
    with pytest.raises(NotFoundError):
        store.get("none")


def test_making_the_bucket_twice_is_no_error(store: ObjectStore) -> None:
    store.ensure_bucket()
    store.ensure_bucket()


def test_keys_are_listed_by_prefix_and_deleted_missing_or_not(store: ObjectStore) -> None:
    for key in ("t/1/x", "t/1/y", "t/2/z"):
        store.put(key, b"-", content_type="text/plain")
    assert sorted(store.keys("t/1/")) == ["t/1/x", "t/1/y"]
    store.delete(["t/1/x", "t/1/never"])
    assert list(store.keys("t/")) == ["t/1/y", "t/2/z"]


def test_a_multipart_object_appears_whole_although_its_first_part_comes_last(
    store: ObjectStore,
) -> None:
    upload = store.open_multipart("big", content_type="audio/wav")
    parts = {n: bytes([n]) * (5 * MEBIBYTE) for n in (1, 2)} | {3: b"tail"}
    for number in (2, 3, 1):
        assert store.stat("big") is None
        upload.put_part(number, parts[number])
    upload.complete()
    assert store.get("big") == parts[1] + parts[2] + parts[3]


def test_an_aborted_upload_leaves_nothing_and_abort_never_raises(store: ObjectStore) -> None:
    upload = store.open_multipart("big", content_type="audio/wav")
    upload.put_part(1, b"x")
    upload.abort()
    upload.abort()
    assert store.stat("big") is None


def test_uploads_that_nobody_completed_are_forgotten_by_prefix(store: ObjectStore) -> None:
    mine = [store.open_multipart(f"t/a/jobs/1/out/{n}", content_type="audio/wav") for n in (1, 2)]
    other = store.open_multipart("t/a/jobs/2/out/1", content_type="audio/wav")
    for upload in (*mine, other):
        upload.put_part(1, b"x")
    assert store.abort_uploads("t/a/jobs/1/") == 2
    assert store.abort_uploads("t/a/jobs/1/") == 0
    with pytest.raises((StoreError, NotFoundError)):
        mine[0].complete()
    other.complete()
    assert list(store.keys("t/")) == ["t/a/jobs/2/out/1"]


def test_a_presigned_url_serves_the_file_under_its_name_and_type(s3_settings: Settings) -> None:
    store = S3Store(s3_settings)
    store.ensure_bucket()
    store.put("k", b"0123456789", content_type="application/octet-stream")
    url = store.presigned_get("k", expires_s=60, filename="a.mp3", content_type="audio/mpeg")
    reply = httpx.get(url, headers={"Range": "bytes=2-4"})
    assert (reply.status_code, reply.content) == (206, b"234")
    assert reply.headers["content-type"] == "audio/mpeg"
    assert 'filename="a.mp3"' in reply.headers["content-disposition"]
    assert httpx.get(url.replace("a.mp3", "b.mp3")).status_code == 403


def test_an_expired_or_missing_signature_opens_nothing(s3_settings: Settings) -> None:
    store = S3Store(s3_settings)
    store.ensure_bucket()
    store.put("k", b"secret", content_type="text/plain")
    url = store.presigned_get("k", expires_s=1, filename="a", content_type="text/plain")
    time.sleep(2.1)
    assert httpx.get(url).status_code == 403, datetime.now(tz=UTC)
    assert httpx.get(url.split("?")[0]).status_code == 403


def test_a_store_that_is_away_is_a_transient_error(s3_settings: Settings) -> None:
    away = S3Store(s3_settings.model_copy(update={"s3_endpoint": "127.0.0.1:1"}))
    with pytest.raises(StoreError):
        away.put("k", b"", content_type="text/plain")
    away.presigned_get("k", expires_s=1, filename="a", content_type="text/plain")  # asks nobody


def test_wrong_credentials_are_a_setup_error(s3_settings: Settings) -> None:
    stranger = S3Store(s3_settings.model_copy(update={"s3_access_key": "stranger"}))
    with pytest.raises(SetupError):
        stranger.put("k", b"", content_type="text/plain")
