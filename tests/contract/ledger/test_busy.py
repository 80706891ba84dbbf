"""Somebody sits on SQLite's write lock for longer than anybody waits for it in one try."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.engine import ExceptionContext

from shared.errors import LedgerBusyError
from shared.ledger import segments
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.migrate import migrate
from shared.messages import SynthMessage
from shared.segments import SegmentState
from tests.contract.ledger import story

BUSY_S = 0.05
TRIES = 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{path}", busy_timeout_s=BUSY_S, patience_s=60.0)
    migrate(database)
    yield database
    database.close()


@contextmanager
def write_lock(path: Path) -> Iterator[Callable[[], None]]:
    """Hold the lock from another connection until told to let go, at the latest at the end."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield holder.rollback


def count_busy(database: Database) -> list[int]:
    """SQLite's error codes, one for each try that found the lock held."""
    codes = list[int]()

    @event.listens_for(database.engine, "handle_error")
    def note(context: ExceptionContext) -> None:
        codes.append(getattr(context.original_exception, "sqlite_errorcode", -1))

    return codes


def row(database: Database, message: SynthMessage) -> tuple[str, int, int]:
    c = t.segment.c
    found = database.read(
        lambda conn: conn.execute(
            select(c.state, c.attempt, c.crashes).where(
                c.job_id == message.job_id, c.index == message.index
            )
        ).one()
    )
    return found.state, found.attempt, found.crashes


def test_work_that_finds_the_lock_held_is_tried_again_and_burns_no_attempt(
    database: Database, path: Path
) -> None:
    """given a claim and a commit / when each meets the held lock / then both happen, once."""
    story.planned_job(database)
    [message, *_] = story.feed(database)
    codes = count_busy(database)
    claims, commits = [], []
    for work in (
        lambda: claims.append(story.must_claim(database, message)),
        lambda: commits.append(story.commit(database, claims[0])),
    ):
        codes.clear()
        with write_lock(path) as let_go, ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            deadline_s = time.monotonic() + 60
            while len(codes) < TRIES:
                assert not done.done()
                assert time.monotonic() < deadline_s, codes
                time.sleep(0.01)
            let_go()
            done.result(timeout=60)
        assert set(codes) == {sqlite3.SQLITE_BUSY}
    assert commits[0].won
    assert row(database, message) == (SegmentState.DONE, 1, 0)


def test_when_patience_ends_the_work_has_not_happened_and_may_be_done_later(
    database: Database, path: Path
) -> None:
    story.planned_job(database)
    [message, *_] = story.feed(database)
    with write_lock(path), pytest.raises(LedgerBusyError):
        database.transact(
            lambda conn: segments.claim(
                conn, message.job_id, message.index, message.dispatch_no, lease_s=30
            ),
            patience_s=0,
        )
    assert row(database, message) == (SegmentState.DISPATCHED, 0, 0)
    assert story.must_claim(database, message).index == message.index
    assert row(database, message) == (SegmentState.LEASED, 1, 0)


def test_who_only_reads_does_not_wait_for_the_lock(database: Database, path: Path) -> None:
    story.planned_job(database)
    codes = count_busy(database)
    with write_lock(path):
        count = database.read(
            lambda conn: conn.execute(select(func.count()).select_from(t.segment)).scalar_one(),
            patience_s=0,
        )
    assert count == 3
    assert codes == []
