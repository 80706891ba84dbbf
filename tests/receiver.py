"""A real receiver of webhooks: an HTTP or HTTPS server on loopback that does as a test says."""

import contextlib
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


Answer = Callable[["Handler", Received], None]


class Handler(BaseHTTPRequestHandler):
    """Notes a request and lets the receiver's answer see to the rest."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(time.time(), self.command, self.path, headers, body)
        self.server.receiver.received.append(received)
        with contextlib.suppress(OSError):  # the sender had enough
            self.server.receiver.answer(self, received)

    do_GET = do_POST  # noqa: N815 - a followed redirect would come so

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    receiver: "Receiver"

    def handle_error(self, *_: object) -> None:
        return  # connections that break are what some tests are about


def ok(handler: Handler, _received: Received) -> None:
    handler.reply(200)


def answers(status: int, **headers: str) -> Answer:
    return lambda handler, _received: handler.reply(status, **headers)


@dataclass
class Receiver:
    """What came in, and how it is answered from now on."""

    port: int
    scheme: str = "http"
    answer: Answer = ok
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"

    def ids(self) -> list[str]:
        return [one.id for one in self.received]

    def wait_for(self, count: int, within_s: float = 60.0) -> list[Received]:
        deadline = time.monotonic() + within_s
        while len(self.received) < count:
            assert time.monotonic() < deadline, f"{len(self.received)} of {count} came"
            time.sleep(0.02)
        return list(self.received)


@contextlib.contextmanager
def running_receiver(
    tls: ssl.SSLContext | None = None, answer: Answer = ok, *, port: int = 0
) -> Iterator[Receiver]:
    """A receiver on a port of 127.0.0.1; 0: a free one."""
    server = _Server(("127.0.0.1", port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    receiver = Receiver(server.server_address[1], "http" if tls is None else "https", answer)
    server.receiver = receiver
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Certificate:
    """A self-made certificate and its key, as PEM files."""

    cert: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.cert, self.key)
        return made


def make_certificate(folder: Path, *names: str) -> Certificate:
    """A certificate for these names, such as `DNS:localhost` or `IP:127.0.0.1`."""
    made = Certificate(folder / "cert.pem", folder / "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    subprocess.run(
        [
            *command.split(),
            *("-keyout", str(made.key), "-out", str(made.cert), "-subj", "/CN=receiver"),
            *("-addext", f"subjectAltName={','.join(names)}"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
        ],
        check=True,
        capture_output=True,
    )
    return made
