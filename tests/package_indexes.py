"""Small package indexes for tests: real HTTP servers that pip and npm can fetch from."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from worker.engines.files import Package

VERSION = "1.0.0"


def wheel(name: str, files: Mapping[str, bytes]) -> tuple[Package, bytes]:
    """A wheel that pip accepts, with these files in it."""
    module = name.replace("-", "_")
    info = f"{module}-{VERSION}.dist-info"
    members = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
    }
    record = "".join(f"{member},,\n" for member in members) + f"{info}/RECORD,,\n"
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for member, content in {**members, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(member, content)
    return _package("pip", name, f"{module}-{VERSION}-py3-none-any.whl", sink.getvalue())


def npm_package(name: str, files: Mapping[str, bytes]) -> tuple[Package, bytes]:
    """A tarball as npm packs it, with these files under `package/`."""
    described = json.dumps({"name": name, "version": VERSION}).encode()
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as archive:
        for member, content in {"package.json": described, **files}.items():
            entry = tarfile.TarInfo(f"package/{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return _package("npm", name, f"{name}-{VERSION}.tgz", sink.getvalue())


def _package(kind: str, name: str, file_name: str, content: bytes) -> tuple[Package, bytes]:
    digest = hashlib.sha256(content).hexdigest()
    return Package(kind, name, VERSION, file_name, digest, len(content)), content  # type: ignore[arg-type]


@dataclass
class Index:
    """What is served, by file name; taking a file out makes its package fail."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def pip_url(self) -> str:
        return f"{self.url}/simple/"

    @property
    def npm_url(self) -> str:
        return f"{self.url}/npm"

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Content type and body for a path, or None: not found."""
        *_, last = path.rstrip("/").split("/")
        if path.startswith("/simple/"):
            wanted = last.replace("-", "_")
            links = "".join(
                f'<a href="/files/{name}">{name}</a>'
                for name in self.files
                if name.startswith(wanted)
            )
            return ("text/html", links.encode()) if links else None
        if last in self.files:
            return "application/octet-stream", self.files[last]
        tarball = self.files.get(f"{last}-{VERSION}.tgz")
        return None if tarball is None else ("application/json", self._document(last, tarball))

    def _document(self, name: str, tarball: bytes) -> bytes:
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}"
        dist = {"tarball": f"{self.npm_url}/{name}/-/{name}-{VERSION}.tgz", "integrity": integrity}
        version = {"name": name, "version": VERSION, "dist": dist}
        return json.dumps(
            {"name": name, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version}}
        ).encode()


@contextmanager
def running_index() -> Iterator[Index]:
    """A package index on loopback, empty at first."""
    held: list[Index] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held[0].asked.append(self.path)
            found = held[0].answer(self.path)
            kind, body = found or ("text/plain", b"")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held.append(Index(f"http://127.0.0.1:{server.server_port}"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield held[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
