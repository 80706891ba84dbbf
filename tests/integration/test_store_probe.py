"""Whether the local store refuses writes: asked of a real one, and of one that is broken."""

import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.servers.seaweed import SeaweedServer
from cli.store_probe import store_has_room, store_refuses
from shared.settings import Settings
from shared.storage import S3Store

_BROKEN = b"<Error><Code>InternalError</Code><Message>We are sorry</Message></Error>"


class _Broken(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(_BROKEN)))
        self.end_headers()
        self.wfile.write(_BROKEN)

    def log_message(self, *_: Any) -> None:
        """Tests are quiet."""


@pytest.fixture
def broken() -> Iterator[str]:
    """The address of a store that answers every write with an error of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Broken)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def at(endpoint: str) -> SeaweedServer:
    return SimpleNamespace(endpoint=endpoint, access_key="", secret_key="")  # type: ignore[return-value]


def test_a_store_that_answers_a_write_with_its_own_error_refuses(broken: str) -> None:
    assert store_refuses(Settings(), at(broken))


def test_a_store_that_writes_or_has_no_bucket_yet_does_not(
    seaweed: SeaweedServer, s3_settings: Settings
) -> None:
    assert not store_refuses(s3_settings, seaweed)
    S3Store(s3_settings).ensure_bucket()
    assert not store_refuses(s3_settings, seaweed)


def test_nor_does_one_that_cannot_be_reached() -> None:
    assert not store_refuses(Settings(s3_bucket=f"b{uuid.uuid4().hex}"), at("127.0.0.1:9"))


def test_room_is_that_of_the_disk_beneath(tmp_path: Path) -> None:
    assert store_has_room(tmp_path)
    assert not store_has_room(tmp_path / "missing")
