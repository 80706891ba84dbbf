"""`python -m api` as the supervisor and the container start it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from shared.ledger import nodes
from shared.ledger.database import open_database
from shared.ledger.migrate import migrate
from tests.unit.api.engines import engine_info

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def start(tmp_path: Path, port: int) -> Iterator[Start]:
    """Start the API over a ledger that knows one engine."""
    with open_database(f"sqlite:///{tmp_path / 'voxfarm.db'}") as database:
        migrate(database)
        database.transact(lambda conn: nodes.publish(conn, "node", engine_info()))
    started = []

    def start(**environment: str) -> subprocess.Popen[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("VOXFARM_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "api"],
            env=inherited
            | {
                "VOXFARM_DATA_DIR": str(tmp_path),
                "VOXFARM_API_PORT": str(port),
                "VOXFARM_REDIS_URL": "redis://127.0.0.1:1/0",  # nobody listens there
                "VOXFARM_S3_ENDPOINT": "127.0.0.1:1",
            }
            | environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def client(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client:
        yield client


def wait_until_alive(process: subprocess.Popen[str], client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        try:
            if client.get("/livez").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the API did not start")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_order_although_somebody_is_listening(
    start: Start, client: httpx.Client, signum: signal.Signals
) -> None:
    process = start()
    wait_until_alive(process, client)
    job = client.post("/v1/jobs", json={"text": "Hello."}).json()
    with client.stream("GET", job["links"]["events"]) as stream:
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith("event: ")) == "event: progress"
        process.send_signal(signum)
        assert list(lines)[-1] == ""
    _, log = process.communicate(timeout=15)
    assert process.returncode == 0, log
    assert "Traceback" not in log


def test_it_listens_on_loopback_only(start: Start, client: httpx.Client, port: int) -> None:
    wait_until_alive(start(), client)
    with socket.socket(socket.AF_INET6) as other, pytest.raises(OSError, match="refused"):
        other.connect(("::1", port))


def test_it_refuses_an_open_address_in_one_plain_line(start: Start) -> None:
    process = start(VOXFARM_API_HOST="0.0.0.0")  # noqa: S104 - that is the point
    _, log = process.communicate(timeout=60)
    assert process.returncode == 1
    assert log.splitlines() == [log.rstrip("\n")]
    assert "VOXFARM_ALLOW_UNAUTHENTICATED" in log


def test_a_port_that_is_taken_is_said(start: Start, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        process = start()
        _, log = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "address already in use" in log


def test_a_kill_between_commit_and_answer_loses_nothing(
    start: Start, client: httpx.Client, tmp_path: Path
) -> None:
    crash_file = tmp_path / "crash"
    crash_file.write_text("api.accepted")
    process = start(VOXFARM_CRASH_FILE=str(crash_file))
    wait_until_alive(process, client)
    wish, key = {"text": "Hello."}, {"Idempotency-Key": "k"}
    with pytest.raises(httpx.TransportError):
        client.post("/v1/jobs", json=wish, headers=key)
    assert process.wait(timeout=15) == -signal.SIGKILL
    wait_until_alive(start(), client)
    [job] = client.get("/v1/jobs").json()["data"]
    again = client.post("/v1/jobs", json=wish, headers=key)
    assert (again.status_code, again.json()["id"]) == (200, job["id"])
