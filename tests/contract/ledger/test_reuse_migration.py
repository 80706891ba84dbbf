"""Objects and jobs from before audio was shared: counted and kept, on both databases."""

import time

from alembic import command
from sqlalchemy import Connection, select, update

from shared.ledger import expiry
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.migrate import alembic_config, migrate
from tests.contract.ledger import shelf

BEFORE = "0010"
DAY_S = 86_400


def move(database: Database, revision: str, *, down: bool = False) -> None:
    def work(conn: Connection) -> None:
        config = alembic_config()
        config.attributes["connection"] = conn
        (command.downgrade if down else command.upgrade)(config, revision)

    database.transact(work)


def test_what_was_there_before_is_counted_and_expires_like_the_rest(database: Database) -> None:
    job_id = shelf.completed_job(database, per_part=3)
    move(database, BEFORE, down=True)
    database.transact(
        lambda conn: conn.execute(
            update(t.segment).where(t.segment.c.index != 2).values(object_key="one")
        )
    )
    migrate(database)
    shelf.check_references(database)
    o, j = t.stored_object.c, t.job.c
    refs = database.read(
        lambda conn: {row.key: row.refs for row in conn.execute(select(o.key, o.refs))}
    )
    assert refs["one"] == 2
    assert sorted(refs.values()) == [1, 1, 1, 2]
    row = database.read(
        lambda conn: conn.execute(
            select(j.expires_at, j.unswept_since, j.ended_at, j.retention_s).where(j.id == job_id)
        ).one()
    )
    assert abs(row.expires_at - (time.time() + 7 * DAY_S)) < DAY_S / 24
    assert (row.unswept_since, row.retention_s) == (row.ended_at, 7 * DAY_S)
    shelf.expire(database, job_id, reuse_s=0)
    assert len(shelf.doomed(database)) == 4
    assert database.read(lambda conn: expiry.unfinished(conn, 9)) == []
