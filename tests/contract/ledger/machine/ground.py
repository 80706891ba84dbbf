"""A ledger for very many short stories: quickly emptied, and it need survive no power cut."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from shared.ledger import tables as t
from shared.ledger.database import Database
from tests.contract.ledger.machine import moves


def prepare(database: Database) -> None:
    """Plant the witness, and let commits and the search for deadlocks take no time."""
    moves.plant(database)
    if database.dialect == "postgresql":
        for setting in ("synchronous_commit = off", "deadlock_timeout = '20ms'"):
            _set_for_all(database, setting)
    else:
        event.listen(database.engine, "connect", _without_fsync)
    database.engine.dispose()


def _set_for_all(database: Database, setting: str) -> None:
    name = database.engine.url.database
    database.transact(lambda conn: conn.exec_driver_sql(f"ALTER DATABASE {name} SET {setting}"))


def _without_fsync(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.execute("PRAGMA synchronous=OFF")


def empty(database: Database) -> None:
    """Forget everything."""

    def forget(conn: Connection) -> None:
        for table in reversed(t.metadata.sorted_tables):
            conn.execute(table.delete())
        conn.exec_driver_sql("DELETE FROM moves")

    database.transact(forget)


@contextmanager
def snapshot(database: Database) -> Iterator[Connection]:
    """A connection that sees one moment only, whatever is done meanwhile."""
    level = {"isolation_level": "REPEATABLE READ"} if database.dialect == "postgresql" else {}
    engine = database.engine.execution_options(voxfarm_reading=True, **level)
    with engine.begin() as conn:
        yield conn
