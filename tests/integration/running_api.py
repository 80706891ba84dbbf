"""The real API over a real ledger on a free loopback port, in a thread of the test's process."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
from fastapi import FastAPI
from sqlalchemy import Connection

from api.main import create_app
from api.serving import Server
from shared.farm import Farm, farm_of
from shared.ledger import nodes
from shared.ledger.migrate import migrate
from shared.settings import Settings
from shared.voices import EngineInfo


@dataclass(frozen=True)
class RunningApi:
    """A served API, its farm, and a client for it."""

    app: FastAPI
    farm: Farm
    client: httpx.Client
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def publish(self, *engines: EngineInfo) -> None:
        """Have a node run each of these engines."""
        for info in engines:
            self.farm.database.transact(
                lambda conn, info=info: nodes.publish(conn, f"node-{info.name}", info)
            )

    def submit(self, **body: object) -> httpx.Response:
        """Ask for a job; the text is given unless a test is about it."""
        return self.client.post("/v1/jobs", json={"text": "Hello, world."} | body)

    def rows(self) -> dict[str, int]:
        """How many rows each table holds that a submit could write."""

        def count(conn: Connection) -> dict[str, int]:
            return {
                name: conn.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()  # noqa: S608
                for name in ("job", "job_text", "step", "idempotency", "outbox")
            }

        return self.farm.database.read(count)


def without_servers(data_dir: Path, **changes: object) -> Settings:
    """Settings of a farm on SQLite whose Redis and store are away: nobody listens on port 1.

    Requests are not counted, for tests ask faster than clients may.
    """
    defaults = {
        "data_dir": data_dir,
        "database_url": "",
        "redis_url": "redis://127.0.0.1:1/0",
        "s3_endpoint": "127.0.0.1:1",
        "requests_per_s": 0,
    }
    return Settings.model_validate(defaults | changes)


@contextlib.contextmanager
def running_api(settings: Settings, *, migrated: bool = True) -> Iterator[RunningApi]:
    """Serve the API of these settings until the end of the block."""
    # With the protocol named, asyncio turns Nagle's delay off, as it does for its own listeners.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with farm_of(settings) as farm, listener:
        if migrated:
            migrate(farm.database)
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        app = create_app(farm)
        server = Server(app, settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            deadline = time.monotonic() + 20
            while not server.started:
                assert thread.is_alive()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False
            ) as client:
                yield RunningApi(app, farm, client, port)
        finally:
            server.should_exit = True
            thread.join()
