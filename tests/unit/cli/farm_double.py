"""A real HTTP server on loopback whose answers a test writes itself, one script per path.

It stands for what no healthy farm does on demand: cut connections, wrong bytes, expired links.
"""

import json
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Answer = Callable[["Handler"], None]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came in."""

    path: str
    headers: dict[str, str]
    body: bytes


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "FarmDouble"

    def do_GET(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?", 1)[0]
        self.server.seen.append(Seen(self.path, dict(self.headers.items()), self.body))
        answers = self.server.script[self.command, path]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(self)

    do_POST = do_GET  # noqa: N815 - the name http.server looks for

    def send_whole(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def cut(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class FarmDouble(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: dict[tuple[str, str], list[Answer]] = defaultdict(
            lambda: [lambda request: request.send_whole(404, b"nothing here")]
        )
        self.seen: list[Seen] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def on(self, method: str, path: str, *answers: Answer) -> None:
        self.script[method, path] = list(answers)

    def asked(self, path: str) -> list[Seen]:
        return [request for request in self.seen if request.path.split("?", 1)[0] == path]

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that leave early are part of the stories told here."""


@contextmanager
def farm_double() -> Iterator[FarmDouble]:
    with FarmDouble() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def says(value: object, status: int = 200, **headers: str) -> Answer:
    body = json.dumps(value).encode()
    return lambda request: request.send_whole(
        status, body, **{"Content_Type": "application/json", **headers}
    )


def refuses(status: int, detail: str, code: str = "bad-request", **fields: object) -> Answer:
    problem = {"type": "about:blank", "title": "no", "status": status, "detail": detail}
    return says(
        {**problem, "code": code, **fields}, status, Content_Type="application/problem+json"
    )


def breaks(request: Handler) -> None:
    request.cut()


def streams(*events: tuple[str, object], cut: bool = False) -> Answer:
    """Server-sent events, then the end of the connection: clean, or in mid-stream."""

    def answer(request: Handler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for kind, value in events:
            text = f": beat\n\nevent: {kind}\ndata: {json.dumps(value)}\n\n".encode()
            request.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        if cut:
            request.cut()
        else:
            request.wfile.write(b"0\r\n\r\n")

    return answer


def a_job(state: str = "rendering", **changes: object) -> dict[str, object]:
    job: dict[str, object] = {
        "id": "j1",
        "object": "job",
        "state": state,
        "paused": False,
        "tier": "standard",
        "engine": "tone",
        "voice": "a",
        "language": "en",
        "format": "wav",
        "sample_rate_hz": 24_000,
        "speed": 1.0,
        "seed": 0,
        "title": "A title",
        "metadata": {},
        "characters": 1234,
        "created_at": "2026-11-20T10:00:00Z",
        "started_at": None,
        "ended_at": None,
        "due_at": None,
        "progress": a_progress(),
        "error": None,
        "links": {},
    }
    return job | changes


def a_progress(**changes: object) -> dict[str, object]:
    progress: dict[str, object] = {
        "segments_total": 10,
        "segments_done": 5,
        "segments_quarantined": 0,
        "segments_skipped": 0,
        "fraction": 0.5,
        "audio_s": 20.0,
        "eta_s": 12.0,
        "parts_total": 1,
        "parts_done": 0,
    }
    return progress | changes
