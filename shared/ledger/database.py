"""The ledger's connection: short transactions, retried when the database is busy or away.

SQLite runs in WAL mode with BEGIN IMMEDIATE and a busy timeout, so that many processes may write;
PostgreSQL runs READ COMMITTED, where every conditional update re-checks its WHERE on the new row.
"""

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from shared import silent_peers
from shared.errors import LedgerBusyError

T = TypeVar("T")
BUSY_TIMEOUT_S = 10.0
IDLE_TRANSACTION_S = 5
# serialization failure, deadlock, lock not available, idle in a transaction for too long,
# admin shutdown, crash shutdown, cannot connect now, too many connections
_RETRIED_SQLSTATES = frozenset(
    {"40001", "40P01", "55P03", "25P03", "57P01", "57P02", "57P03", "53300"}
)


class Database:
    """One process's door to the ledger. Thread-safe; not to be carried over a fork.

    `transact(work)` runs `work(connection)` in one transaction. Since it may run `work` again
    after a lock time-out or a lost connection, `work` must hold SQL only. `busy_timeout_s` is how
    long SQLite waits for its write lock within one try.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 8,
        patience_s: float = 30.0,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        self._engine = _make_engine(url, pool_size, busy_timeout_s)
        self._reader = self._engine.execution_options(voxfarm_reading=True)
        self._patience_s = patience_s

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, for migrations and tests."""
        return self._engine

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    def transact(self, work: Callable[[Connection], T], *, patience_s: float | None = None) -> T:
        """Run `work` in a transaction and return what it returns.

        Raises LedgerBusyError when the database stays locked or away for `patience_s` seconds.
        """
        return self._run(self._engine, work, patience_s)

    def read(self, work: Callable[[Connection], T], *, patience_s: float | None = None) -> T:
        """Like `transact`, for work that only reads: on SQLite it takes no write lock."""
        return self._run(self._reader, work, patience_s)

    def _run(self, engine: Engine, work: Callable[[Connection], T], patience_s: float | None) -> T:
        deadline = time.monotonic() + (self._patience_s if patience_s is None else patience_s)
        pause_s = 0.02
        while True:
            try:
                with engine.begin() as conn:
                    return work(conn)
            except (DBAPIError, PoolTimeoutError) as error:
                if not _passing(error):
                    raise
                if time.monotonic() >= deadline:
                    raise LedgerBusyError(f"the ledger is busy or away: {_brief(error)}") from error
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
            pause_s = min(pause_s * 2, 1.0)

    def lock_tier(self, conn: Connection, tier: str) -> None:
        """Hold this tier's dispatch lock until the transaction ends.

        SQLite's immediate transactions already exclude every other writer.
        """
        if self.dialect == "postgresql":
            conn.execute(
                text("SELECT pg_advisory_xact_lock(hashtext(:key))"), {"key": f"fill:{tier}"}
            )

    def close(self) -> None:
        """Close every pooled connection."""
        self._engine.dispose()


@contextmanager
def open_database(url: str, *, pool_size: int = 8) -> Iterator[Database]:
    """A Database that is closed at the end of the block."""
    database = Database(url, pool_size=pool_size)
    try:
        yield database
    finally:
        database.close()


def _make_engine(url: str, pool_size: int, busy_timeout_s: float) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        engine = create_engine(
            parsed,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=10,
            pool_pre_ping=True,
            pool_recycle=1_800,
            connect_args={
                "connect_timeout": 5,
                "keepalives_idle": silent_peers.IDLE_S,
                "keepalives_interval": silent_peers.PROBE_EVERY_S,
                "keepalives_count": silent_peers.PROBES,
                "tcp_user_timeout": silent_peers.UNANSWERED_S * 1000,
            },
        )
        event.listen(engine, "connect", _configure_postgresql)
        return engine
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=pool_size,
        connect_args={"timeout": busy_timeout_s, "check_same_thread": False},
    )
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    return engine


def _configure_postgresql(dbapi_connection: Any, _record: Any) -> None:  # noqa: ANN401
    """Have the server give up a session whose process is gone or frozen, and its locks with it.

    Transactions hold SQL only, so one that idles for seconds belongs to nobody who will go on soon.
    """
    limits = {
        "idle_in_transaction_session_timeout": f"{IDLE_TRANSACTION_S}s",
        "tcp_keepalives_idle": str(silent_peers.IDLE_S),
        "tcp_keepalives_interval": str(silent_peers.PROBE_EVERY_S),
        "tcp_keepalives_count": str(silent_peers.PROBES),
        "tcp_user_timeout": f"{silent_peers.UNANSWERED_S}s",
    }
    settings = ", ".join(
        f"set_config('{name}', '{limit}', false)" for name, limit in limits.items()
    )
    cursor = dbapi_connection.cursor()
    cursor.execute(f"SELECT {settings}")
    cursor.close()
    dbapi_connection.commit()


def _configure_sqlite(dbapi_connection: sqlite3.Connection, _record: Any) -> None:  # noqa: ANN401
    dbapi_connection.isolation_level = None  # the driver must not begin transactions of its own
    cursor = dbapi_connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",  # an accepted job survives a power cut
        "foreign_keys=ON",
        "cache_size=-16000",
        "temp_store=MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(conn: Connection) -> None:
    reading = conn.get_execution_options().get("voxfarm_reading", False)
    conn.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _passing(error: DBAPIError | PoolTimeoutError) -> bool:
    """True when the same transaction may succeed later: by class and SQLSTATE, never by text."""
    if isinstance(error, PoolTimeoutError) or error.connection_invalidated:
        return True
    original = error.orig
    if isinstance(original, sqlite3.Error):
        code = getattr(original, "sqlite_errorcode", None)
        primary = None if code is None else code & 0xFF
        return primary in {
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_LOCKED,
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_FULL,
            sqlite3.SQLITE_CANTOPEN,
        }
    state = getattr(original, "sqlstate", None)
    if state is None:  # the connection failed before the server answered
        return isinstance(error, OperationalError | InterfaceError)
    return state in _RETRIED_SQLSTATES or state.startswith(("08", "53", "58"))


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
