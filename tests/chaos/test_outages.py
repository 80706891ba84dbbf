"""SQL, Redis and the store away for a minute, each in turn, under a farm's real processes.

Nothing dies, nothing is lost: readiness names what is away, the API accepts while SQL is up and
refuses with 503 `ledger-away` and a `Retry-After` while it is not, and everything ends whole.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from cli.ports import LOOPBACK
from cli.servers.ports import free_ports
from cli.servers.seaweed import SeaweedServer
from cli.servers.valkey import ValkeyServer
from shared.ledger.database import Database
from shared.ledger.migrate import migrate
from shared.settings import Settings
from shared.storage import S3Store
from tests.servers import PostgresServer
from worker.verifying.verdict import verify

pytestmark = [pytest.mark.chaos, pytest.mark.long, pytest.mark.timeout(1_200)]

AWAY_S = 60.0
PATIENCE_S = 120.0
SENTENCES, SENTENCE_S = 300, 1.0  # of which a half is spoken before and between the outages
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "api": ("-m", "api"),
    "scheduler": ("-m", "worker.scheduler"),
    "cpu": ("-m", "worker.cpu"),
    "deliver": ("-m", "worker.deliver"),
    "node": ("-m", "worker.node", "--index", "0"),
}


class Server(Protocol):
    """A server that can be stopped, and started again with what it had."""

    def start(self) -> object: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class Place:
    """The processes, the servers beneath them by what readiness calls them, and a client."""

    servers: Mapping[str, Server]
    settings: Settings
    client: httpx.Client
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def unready(self) -> set[str]:
        """What readiness says is not there."""
        reply = self.client.get("/readyz").json()
        return {name for name, check in reply["checks"].items() if not check["ok"]}

    def submit(self, name: str, sentences: int) -> httpx.Response:
        text = "\n\n".join(f"This is sentence {n} of {name}." for n in range(sentences))
        return self.client.post("/v1/jobs", json={"text": text, "format": "flac"})

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        return found

    def done(self, job_id: str) -> int:
        return int(self.job(job_id)["progress"]["segments_done"])

    def dead(self) -> list[str]:
        return [name for name, process in self.processes.items() if process.poll() is not None]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="voxfarm-away-")))
        folder.chmod(0o755)  # PostgreSQL runs as another user
        (folder / "postgres").mkdir()
        postgres = PostgresServer(folder / "postgres").start()
        stack.callback(postgres.stop)
        valkey = ValkeyServer(tmp_path / "valkey").start()
        stack.callback(valkey.stop)
        store = SeaweedServer(tmp_path / "store").start()
        stack.callback(store.stop)
        [port] = free_ports(1)
        settings = Settings.model_validate(
            {
                "data_dir": tmp_path / "data",
                "database_url": postgres.url,
                "redis_url": valkey.url,
                "s3_endpoint": store.endpoint,
                "s3_access_key": store.access_key,
                "s3_secret_key": store.secret_key,
                "farm_secret": "a secret of a test, long enough for it",
                "api_port": port,
                "engines": ["tone"],
                "default_engine": "tone",
                "allow_testing_engines": True,
                "refuse_when_full": False,
                "engine_options": {"tone": {"delay_s": SENTENCE_S, "slots": 4}},
            }
        )
        database = Database(settings.sqlalchemy_url)
        migrate(database)
        database.close()
        url = f"http://{LOOPBACK}:{port}"
        client = stack.enter_context(httpx.Client(base_url=url, timeout=60))
        servers = {"ledger": postgres, "broker": valkey, "store": store}
        place = Place(servers, settings, client)
        stack.enter_context(started(place, tmp_path))
        wait(lambda: client.get("/readyz").is_success, "the farm is ready")
        yield place


@contextmanager
def started(place: Place, folder: Path) -> Iterator[None]:
    plain = place.settings.model_dump(mode="json", exclude_defaults=True)
    for name in ("s3_secret_key", "farm_secret"):
        plain[name] = getattr(place.settings, name).get_secret_value()
    environment = {
        f"VOXFARM_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in plain.items()
    }
    try:
        for name, arguments in ARGUMENTS.items():
            with (folder / f"{name}.log").open("wb") as log:
                place.processes[name] = subprocess.Popen(
                    [sys.executable, "-P", *arguments],
                    env={
                        **os.environ,
                        **environment,
                        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    },
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
        yield
    finally:
        for process in place.processes.values():
            process.terminate()
        for process in place.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait(happened: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            if happened():
                return
        except (httpx.HTTPError, KeyError, ValueError):
            pass
        assert time.monotonic() < deadline_s, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.3)


def accepted_or_told_to_wait(place: Place, name: str, away: str) -> str | None:
    """Submit while something is away. Returns the job's id; None: refused, as it should be."""
    reply = place.submit(name, 5)
    if reply.is_success:
        return str(reply.json()["id"])
    assert away == "ledger", reply.text
    assert (reply.status_code, reply.json()["code"]) == (503, "ledger-away")
    assert int(reply.headers["Retry-After"]) > 0
    return None


def test_each_store_may_be_away_for_a_minute(place: Place) -> None:
    long = str(place.submit("the long one", SENTENCES).raise_for_status().json()["id"])
    wanted = [long]
    for away, server in place.servers.items():
        before = place.done(long)
        wait(lambda before=before: place.done(long) > before + 4, "the long job goes on")  # type: ignore[misc]
        server.stop()
        stopped_s = time.monotonic()
        wait(lambda away=away: away in place.unready(), f"{away} is named")  # type: ignore[misc]
        assert place.client.get("/livez").is_success
        job_id = accepted_or_told_to_wait(place, f"what came without the {away}", away)
        time.sleep(max(0.0, AWAY_S - (time.monotonic() - stopped_s)))
        assert away in place.unready()
        assert place.dead() == []
        server.start()
        wait(lambda: place.client.get("/readyz").is_success, f"ready again after the {away}")
        if job_id is None:
            reply = place.submit(f"what came without the {away}", 5).raise_for_status()
            job_id = str(reply.json()["id"])
        wanted.append(job_id)
        at_return = place.done(long)
        assert at_return < SENTENCES, "the long job was not long enough"
        wait(lambda n=at_return: place.done(long) > n, f"it goes on after the {away}")  # type: ignore[misc]
    for job_id in wanted:
        wait(lambda j=job_id: place.job(j)["state"] == "completed", "all end", 600)  # type: ignore[misc]
    assert place.dead() == []
    database = Database(place.settings.sqlalchemy_url)
    try:
        store = S3Store(place.settings)
        verdicts = [verify(database, store, job_id) for job_id in wanted]
    finally:
        database.close()
    assert [verdict.wrong for verdict in verdicts] == [[], [], [], []]
    assert [verdict.segments for verdict in verdicts] == [SENTENCES, 5, 5, 5]
