"""The S3 client against stores that misbehave: slow, cut off, confused, or not the right one."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import httpx
import pytest

from shared.errors import SetupError, StoreError
from shared.settings import Settings
from shared.storage import S3Store
from shared.store_http import store_http

OK = b"HTTP/1.1 200 OK\r\nETag: etag\r\nContent-Length: "
UPLOAD = b"<Upload><UploadId>u</UploadId></Upload>"


def replying(body: bytes, head: bytes = OK) -> bytes:
    return head + str(len(body)).encode() + b"\r\nContent-Type: application/xml\r\n\r\n" + body


class OddStore:
    """Speaks HTTP, reads request bodies at a set pace, and answers what a test tells it to."""

    def __init__(self, answer: Callable[[bytes], bytes], bytes_per_s: float) -> None:
        self._answer = answer
        self._bytes_per_s = bytes_per_s
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def store(self) -> S3Store:
        return S3Store(Settings(s3_endpoint=self.url.removeprefix("http://")))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        received = bytearray()
        while b"\r\n\r\n" not in received:
            if not (more := connection.recv(4096)):
                return
            received += more
        head, _, body = bytes(received).partition(b"\r\n\r\n")
        self.requests.append(head)
        length = re.search(rb"(?i)content-length: (\d+)", head)
        missing = (int(length[1]) if length else 0) - len(body)
        while missing > 0 and (more := connection.recv(1 << 16)):
            missing -= len(more)
            time.sleep(len(more) / self._bytes_per_s)
        if missing == 0:
            connection.sendall(self._answer(head))


@contextmanager
def odd_store(answer: Callable[[bytes], bytes], bytes_per_s: float = 1e12) -> Iterator[OddStore]:
    odd = OddStore(answer, bytes_per_s)
    try:
        yield odd
    finally:
        odd.close()


def test_a_part_over_a_slow_line_may_take_longer_than_connecting() -> None:
    with odd_store(lambda _: replying(b""), bytes_per_s=12e6) as odd:
        http = store_http(connections=1, connect_s=0.3)
        began_s = time.monotonic()
        assert http.request("PUT", odd.url, body=bytes(16 << 20)).status == 200
        assert time.monotonic() - began_s > 0.6
        assert len(odd.requests) == 1  # at the first try
        http.clear()


def test_a_completion_that_says_ok_and_means_an_error_is_an_error() -> None:
    def answer(head: bytes) -> bytes:
        return replying(UPLOAD if b"uploads" in head else b"<Error><Code>Internal</Code></Error>")

    with odd_store(answer) as odd:
        upload = odd.store.open_multipart("k", content_type="audio/wav")
        with pytest.raises(StoreError):
            upload.complete()


@pytest.mark.parametrize("body", [b"", b"<html><body>Please log in", b"\xff\xfe"])
def test_what_is_no_s3_answer_is_a_transient_error(body: bytes) -> None:
    with odd_store(lambda _: replying(body)) as odd, pytest.raises(StoreError):
        odd.store.open_multipart("k", content_type="audio/wav")
    with odd_store(lambda _: replying(body)) as odd, pytest.raises(StoreError):
        list(odd.store.keys("t/"))


def test_an_object_that_breaks_off_is_a_transient_error_and_never_a_short_object() -> None:
    cut = OK + b"100\r\n\r\nonly this"
    with odd_store(lambda _: cut) as odd, pytest.raises(StoreError):
        odd.store.get("k")


def test_a_bucket_that_is_not_there_is_a_fault_of_the_setup_that_names_it() -> None:
    said = b"<Error><Code>NoSuchBucket</Code><BucketName>books</BucketName></Error>"
    missing = replying(said, b"HTTP/1.1 404 Not Found\r\nContent-Length: ")
    with odd_store(lambda _: missing) as odd:
        with pytest.raises(SetupError, match="books"):
            odd.store.put("k", b"x", content_type="text/plain")
        with pytest.raises(SetupError, match="books"):
            odd.store.get("k")


def test_an_upload_that_was_swept_away_is_begun_anew_by_trying_again(
    s3_settings: Settings,
) -> None:
    store = S3Store(s3_settings)
    store.ensure_bucket()
    upload = store.open_multipart("k", content_type="audio/wav")
    upload.put_part(1, b"x")
    upload.abort()
    with pytest.raises(StoreError):
        upload.complete()
    assert store.stat("k") is None


@pytest.mark.parametrize(
    "name", ["03-第一章.mp3", 'a "quoted" name.mp3', "a\r\nb.mp3", "naïve.mp3"]
)
def test_a_file_name_of_any_kind_reaches_the_browser(s3_settings: Settings, name: str) -> None:
    store = S3Store(s3_settings)
    store.ensure_bucket()
    store.put("k", b"x", content_type="text/plain")
    url = store.presigned_get("k", expires_s=60, filename=name, content_type="audio/mpeg")
    header = httpx.get(url).headers["content-disposition"]
    assert header.isascii()
    assert unquote(header.split("filename*=UTF-8''")[1]) == name
