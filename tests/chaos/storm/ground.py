"""What a storm falls on: a real farm on one of the databases, with two schedulers.

The processes' own clocks are all wrong, each by another amount up to half an hour: none of them may
decide anything. Where this process has a network and mounts of its own (`__main__` sees to that),
the store lies on a small file system that can be filled, and TCP connections can be cut in the
middle; elsewhere the ground does not offer that.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import redis

from benchmarks.farm_process import Watched, kind_of
from cli.ports import LOOPBACK
from shared.broker import STEP_QUEUES, SYNTH_QUEUES
from shared.errors import BrokerError
from shared.ledger.database import Database
from shared.messages import DELIVERY_QUEUE
from tests.chaos.farm import ChaosFarm
from tests.chaos.storm.database_clock import (
    CLOCK_FILE,
    DatabaseClock,
    PostgresClock,
    SqliteClock,
)
from tests.chaos.storm.letterbox import Letterbox
from tests.chaos.storm.recovery import Queues
from tests.chaos.storm.witness import plant_witness
from tests.servers import PostgresServer

QUEUES = (*SYNTH_QUEUES, *STEP_QUEUES, DELIVERY_QUEUE)
WRONG_CLOCKS = Path(__file__).parent / "wrong_clocks"
STORE_BYTES = 512 * 1024 * 1024
_PATIENCE_S = 30.0
_WEBHOOK_TIMEOUT_S = 2.0
APART = "VOXFARM_STORM_APART"  # set by __main__ in a process with network and mounts of its own


@dataclass(slots=True)
class Ground:
    """The farm, its servers and where it is vulnerable. Not thread-safe but for `farm.send`."""

    farm: ChaosFarm
    database: Database
    database_kind: str
    lease_s: float
    offers: frozenset[str]
    letterbox: Letterbox
    clock: DatabaseClock
    postgres: PostgresServer | None = None
    store_disk: Path | None = None
    _second: subprocess.Popen[bytes] | None = field(default=None)

    def victims(self, kind: str) -> list[psutil.Process]:
        """The live processes of a kind, oldest first; waits for the first one to appear."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            found = self.watched().processes(kind)
            if kind == "scheduler" and self._second is not None and self._second.poll() is None:
                found.append(psutil.Process(self._second.pid))
            living = [p for p in found if _lives(p)]
            if living:
                return sorted(living, key=lambda p: p.pid)
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"no {kind} runs")
            time.sleep(0.1)

    def watched(self) -> Watched:
        """The farm's processes."""
        return self.farm.watched()

    def redis(self) -> redis.Redis:
        """A client of the farm's Redis, with a time limit."""
        url = self._environment()["VOXFARM_REDIS_URL"]
        return redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2)

    def address(self, which: str) -> int:
        """The port of `redis` or `store`."""
        environment = self._environment()
        name = {"redis": "VOXFARM_REDIS_URL", "store": "VOXFARM_S3_ENDPOINT"}[which]
        return int(environment[name].removesuffix("/0").rsplit(":", 1)[1])

    def queues(self) -> Queues:
        """What the queues hold. Raises BrokerError."""
        try:
            with self.redis() as client:
                # The waiting ones first: a message moves from there to `unacked`.
                waiting = [
                    json.loads(raw) for queue in QUEUES for raw in client.lrange(queue, 0, -1)
                ]
                taken = [json.loads(raw)[0] for raw in client.hvals("unacked")]
        except redis.RedisError as error:
            raise BrokerError("Redis is away") from error
        return Queues(*(frozenset(m["headers"]["id"] for m in ms) for ms in (waiting, taken)))

    def redis_answers(self) -> bool:
        """Whether Redis can be reached."""
        with suppress(redis.RedisError), self.redis() as client:
            return bool(client.ping())
        return False

    def store_answers(self) -> bool:
        """Whether the store can be reached."""
        with suppress(httpx.HTTPError):
            url = f"http://{LOOPBACK}:{self.address('store')}/healthz"
            return httpx.get(url, timeout=2).status_code == httpx.codes.OK
        return False

    def store_environment(self) -> Mapping[str, str]:
        """The environment of the farm's processes, which says where everything is."""
        return self._environment()

    def keep_up(self) -> None:
        """Be the operator: a farm that gave up is started again, and so is the second scheduler."""
        assert self.farm.process is not None
        if self.farm.process.poll() is not None:
            self.farm.start()
            self._end_second()
        if self._second is None or self._second.poll() is not None:
            with (self.farm.data_dir / "logs" / "scheduler-2.log").open("ab") as log:
                self._second = subprocess.Popen(
                    [sys.executable, "-P", "-m", "tests.chaos.storm.busy_scheduler"],
                    env=self._environment(),
                    stdout=log,
                    stderr=log,
                )

    def stop(self) -> None:
        """End the farm and the second scheduler."""
        self._end_second()
        self.farm.stop()

    def _end_second(self) -> None:
        if self._second is not None:
            self._second.kill()
            self._second.wait()
            self._second = None

    def _environment(self) -> dict[str, str]:
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:  # of any child: all have the same
            for process in self.watched().process.children(recursive=True):
                with suppress(psutil.Error):
                    environment = process.environ()
                    if "VOXFARM_REDIS_URL" in environment and kind_of(process) != "valkey":
                        return environment
            if time.monotonic() > deadline_s:
                raise TimeoutError("no child of the farm runs")
            time.sleep(0.1)


@contextmanager
def ground(database_kind: str, *, lease_s: float, delay_s: float, seed: int) -> Iterator[Ground]:
    """A farm, ready and with a witness in its ledger; everything is ended with the block."""
    apart = APART in os.environ
    folder = Path(tempfile.mkdtemp(prefix="voxfarm-storm-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    data_dir, disk = folder / "farm", None
    postgres = None
    offers = {database_kind} | ({"network", "mount"} if apart else set())
    environment = _settings(lease_s, delay_s, seed)
    try:
        if database_kind == "postgresql":
            (folder / "postgres").mkdir()
            postgres = PostgresServer(folder / "postgres").start()
            clock: DatabaseClock = PostgresClock(postgres)
            environment["VOXFARM_DATABASE_URL"] = postgres.url
        else:
            environment[CLOCK_FILE] = str(folder / "clock")
            clock = SqliteClock(folder / "clock")
        if apart:
            disk = data_dir / "seaweedfs" / "data"
            disk.mkdir(mode=0o700, parents=True)
            data_dir.chmod(0o700)
            _system("mount", "-t", "tmpfs", "-o", f"size={STORE_BYTES}", "none", str(disk))
        farm = ChaosFarm(data_dir, environment)
        farm.start()
        url = postgres.url if postgres else f"sqlite:///{data_dir / 'voxfarm.db'}"
        database = Database(url)
        plant_witness(database)
        letterbox = Letterbox(seed, sender_waits_s=_WEBHOOK_TIMEOUT_S)
        made = Ground(
            farm,
            database,
            database_kind,
            lease_s,
            frozenset(offers),
            letterbox,
            clock,
            postgres,
            disk,
        )
        with letterbox:
            try:
                made.keep_up()
                yield made
            finally:
                database.close()
                made.stop()
    finally:
        if postgres is not None:
            postgres.stop()
        if disk is not None and disk.is_mount():
            _system("umount", "--lazy", str(disk))
        shutil.rmtree(folder, ignore_errors=True)


def _settings(lease_s: float, delay_s: float, seed: int) -> dict[str, str]:
    """The farm's environment: short times, so that a storm shows in minutes what takes hours."""
    path = os.pathsep.join([str(WRONG_CLOCKS), os.environ.get("PYTHONPATH", str(Path.cwd()))])
    return {
        "VOXFARM_LEASE_S": str(lease_s),
        "VOXFARM_VISIBILITY_TIMEOUT_S": str(lease_s + 1),
        "VOXFARM_REDISPATCH_AFTER_S": "2",
        "VOXFARM_HOST_SILENCE_S": str(lease_s + 3),
        "VOXFARM_REFUSE_WHEN_FULL": "false",  # late is late here, and nobody is turned away
        "VOXFARM_REQUESTS_PER_S": "0",
        "VOXFARM_WEBHOOK_ALLOW_HTTP": "true",
        "VOXFARM_WEBHOOK_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
        "VOXFARM_WEBHOOK_TIMEOUT_S": str(_WEBHOOK_TIMEOUT_S),
        "VOXFARM_WEBHOOK_RETRY_S": str([0, 0.5, 1, 1, 2, 2, 3, 3, *[5] * 12]),
        "VOXFARM_WEBHOOK_RETRY_AFTER_MAX_S": "5",
        "VOXFARM_WEBHOOK_HOLD_S": "0.5",
        "VOXFARM_WEBHOOK_HOLD_MAX_S": "2",
        "VOXFARM_WEBHOOK_PROGRESS_S": "3",
        "VOXFARM_ORPHAN_AFTER_S": str(3 * lease_s),  # whoever is frozen for longer is swept again
        "VOXFARM_DELETE_GRACE_S": "1",
        "VOXFARM_ENGINE_OPTIONS": f'{{"tone": {{"delay_s": {delay_s}, "slots": 4}}}}',
        "VOXFARM_WRONG_CLOCKS": str(seed),
        "PYTHONPATH": path,
    }


def _system(*command: str) -> None:
    subprocess.run(command, check=True)


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
