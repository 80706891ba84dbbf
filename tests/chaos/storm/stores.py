"""Faults of what lies beneath the farm: queues emptied, the database restarted, the disk full."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from tests.chaos.storm.ground import Ground
from tests.chaos.storm.processes import KillServer

_BLOCK = bytes(1024 * 1024)


class FlushRedis:
    """FLUSHALL: every queued message, every unacked one and every binding is gone."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def begin(self) -> None:
        with self._ground.redis() as client:
            client.flushall()

    def end(self) -> None:
        """It is over at once."""


class EmptyRedis:
    """Redis is killed, its append-only file lost, and it is started again with nothing."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._kill = KillServer(ground, "valkey", ground.redis_answers)

    def begin(self) -> None:
        supervisor = self._ground.watched().process
        [valkey] = self._ground.victims("valkey")
        supervisor.suspend()  # it is not to start the next one before the files are gone
        try:
            valkey.kill()
            shutil.rmtree(self._ground.farm.data_dir / "valkey" / "appendonlydir")
        finally:
            supervisor.resume()

    def end(self) -> None:
        self._kill.end()


class RestartDatabase:
    """An immediate shutdown of PostgreSQL, and its recovery, at once or much later."""

    def __init__(self, ground: Ground) -> None:
        assert ground.postgres is not None
        self._postgres = ground.postgres

    def begin(self) -> None:
        self._postgres.stop()

    def end(self) -> None:
        self._postgres.start()


class StepClock:
    """The database's clock is set: minutes on or back, at once, and stays so."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self._clock = ground.clock
        self._by_s = 60.0 * (1 + seed % 10) * (1 if seed % 3 == 0 else -1)

    def begin(self) -> None:
        self._clock.step(self._by_s)

    def end(self) -> None:
        """It is not set right again."""


class HoldDatabaseLock:
    """Another program holds SQLite's one write lock."""

    def __init__(self, ground: Ground) -> None:
        self._path = ground.database.engine.url.database
        self._held: sqlite3.Connection | None = None

    def begin(self) -> None:
        self._held = sqlite3.connect(str(self._path), timeout=60, isolation_level=None)
        self._held.execute("BEGIN IMMEDIATE")

    def end(self) -> None:
        assert self._held is not None
        self._held.execute("ROLLBACK")
        self._held.close()


class FillDisk:
    """The file system beneath the store has no byte left."""

    def __init__(self, ground: Ground) -> None:
        assert ground.store_disk is not None
        self._ballast = ground.store_disk / "ballast"

    def begin(self) -> None:
        _fill(self._ballast)

    def end(self) -> None:
        self._ballast.unlink()


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for block in (_BLOCK, _BLOCK[:4096], _BLOCK[:1]):
            with suppress(OSError):
                while file.write(block) == len(block):
                    pass
