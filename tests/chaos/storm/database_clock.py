"""The database's clock as a storm sets it, without touching the machine's.

PostgreSQL finds a `clock_timestamp` of ours before the server's. SQLite asks in every process for
itself: each gets a `julianday` of ours with every connection (`wrong_clocks`), which adds what is
written in one file.
"""

from pathlib import Path
from typing import Protocol

from tests.servers import PostgresServer

CLOCK_FILE = "VOXFARM_STORM_CLOCK_FILE"
_SETTABLE = (
    "CREATE SCHEMA clock",
    "CREATE TABLE clock.step (by_s float8 NOT NULL)",
    "INSERT INTO clock.step VALUES (0)",
    """CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    $$ SELECT pg_catalog.clock_timestamp() + (SELECT by_s FROM clock.step) * interval '1 s' $$""",
    "ALTER DATABASE postgres SET search_path = public, clock, pg_catalog",
)


class DatabaseClock(Protocol):
    """A clock that can be set."""

    def step(self, by_s: float) -> None:
        """Set it on, or back, by so many seconds; it stays so."""
        ...


class PostgresClock:
    """The clock of one database of a server; made before anybody connects."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        for statement in _SETTABLE:
            server.execute(statement)

    def step(self, by_s: float) -> None:
        """See DatabaseClock."""
        self._server.execute(f"UPDATE clock.step SET by_s = by_s + {by_s}")  # noqa: S608


class SqliteClock:
    """The clock of all processes that are started with `CLOCK_FILE` in their environment."""

    def __init__(self, file: Path) -> None:
        self._file, self._by_s = file, 0.0
        self.step(0.0)

    def step(self, by_s: float) -> None:
        """See DatabaseClock. All processes see it at once."""
        self._by_s += by_s
        written = self._file.with_suffix(".new")
        written.write_text(str(self._by_s))
        written.replace(self._file)
