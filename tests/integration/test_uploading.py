"""Files of unknown length reach the real store whole, small ones in one request."""

import hashlib
import random

import pytest

from shared.settings import Settings
from shared.storage import S3Store
from worker.uploading import SMALL_BYTES, upload_to

MEBIBYTE = 1024 * 1024


@pytest.fixture
def store(s3_settings: Settings) -> S3Store:
    store = S3Store(s3_settings)
    store.ensure_bucket()
    return store


def parts_of(total_bytes: int, part_bytes: int = 8 * MEBIBYTE) -> dict[int, bytes]:
    data = random.Random(total_bytes).randbytes(total_bytes)
    pieces = [data[at : at + part_bytes] for at in range(0, max(1, total_bytes), part_bytes)]
    return dict(enumerate(pieces, 1))


@pytest.mark.parametrize("total_bytes", [0, 1, 8 * MEBIBYTE, SMALL_BYTES, SMALL_BYTES + 1])
def test_a_file_is_whole_whatever_its_size_although_its_first_part_comes_last(
    store: S3Store, total_bytes: int
) -> None:
    parts = parts_of(total_bytes)
    with upload_to(store, "a/file", "audio/flac") as upload:
        for number in [*sorted(parts)[1:], 1]:
            upload.put_part(number, parts[number])
    whole = b"".join(parts[number] for number in sorted(parts))
    assert store.get("a/file") == whole
    small = total_bytes <= SMALL_BYTES
    assert upload.sha256 == (hashlib.sha256(whole).hexdigest() if small else None)
    found = store.stat("a/file")
    assert found is not None
    assert ("-" in found.etag) is not small  # an etag with a dash is that of a file in parts


@pytest.mark.parametrize("total_bytes", [MEBIBYTE, SMALL_BYTES + MEBIBYTE])
def test_a_file_that_is_given_up_is_never_seen(store: S3Store, total_bytes: int) -> None:
    class GivenUpError(Exception):
        pass

    def give_up() -> None:
        with upload_to(store, "a/lost", "audio/flac") as upload:
            for number, part in parts_of(total_bytes).items():
                upload.put_part(number, part)
            raise GivenUpError

    with pytest.raises(GivenUpError):
        give_up()
    assert store.stat("a/lost") is None
