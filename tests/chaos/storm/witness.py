"""A witness inside the database: triggers that write down every commit of a segment.

The ledger's row shows only the last state; the witness tells whether it came there once, and
whether anything about the row changed afterwards. A sentence that is planned with audio of an
earlier job is there at once: that is a reuse.
"""

from sqlalchemy import Connection, text

from shared.ledger.database import Database

_TABLE = (
    "CREATE TABLE IF NOT EXISTS storm_witness"
    " (job_id varchar(26), number integer, token integer, what varchar(16))"
)
_VALUES = 'VALUES (NEW.job_id, NEW."index", NEW.token,'
_SQLITE = (
    f"""CREATE TRIGGER IF NOT EXISTS storm_commit AFTER UPDATE ON segment
    WHEN NEW.state = 'done' AND OLD.state <> 'done'
    BEGIN INSERT INTO storm_witness {_VALUES} 'commit'); END""",
    f"""CREATE TRIGGER IF NOT EXISTS storm_change AFTER UPDATE ON segment
    WHEN OLD.state = 'done'
    BEGIN INSERT INTO storm_witness {_VALUES} 'change'); END""",
    f"""CREATE TRIGGER IF NOT EXISTS storm_reuse AFTER INSERT ON segment
    WHEN NEW.state = 'done' AND NEW.kind = 'speech'
    BEGIN INSERT INTO storm_witness {_VALUES} 'reuse'); END""",
)
_POSTGRESQL = (
    f"""CREATE OR REPLACE FUNCTION storm_witnessed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO public.storm_witness {_VALUES}
    CASE WHEN TG_OP = 'INSERT' THEN 'reuse' WHEN OLD.state = 'done' THEN 'change'
    ELSE 'commit' END);
    RETURN NULL; END $$""",
    """CREATE TRIGGER storm_reused AFTER INSERT ON segment FOR EACH ROW
    WHEN (NEW.state = 'done' AND NEW.kind = 'speech') EXECUTE FUNCTION storm_witnessed()""",
    """CREATE TRIGGER storm_witnessed AFTER UPDATE ON segment FOR EACH ROW
    WHEN (NEW.state = 'done' OR OLD.state = 'done') EXECUTE FUNCTION storm_witnessed()""",
)


def plant_witness(database: Database) -> None:
    """Add table and triggers to a migrated ledger, once."""

    def plant(conn: Connection) -> None:
        for statement in (_TABLE, *(_SQLITE if database.dialect == "sqlite" else _POSTGRESQL)):
            conn.execute(text(statement))

    database.transact(plant)


def commits(conn: Connection, job_id: str) -> dict[int, int]:
    """How often each segment of a job was committed, by index."""
    return _counts(conn, job_id, "commit")


def changes(conn: Connection, job_id: str) -> dict[int, int]:
    """How often each segment of a job was changed after its commit, by index."""
    return _counts(conn, job_id, "change")


def reuses(conn: Connection, job_id: str) -> dict[int, int]:
    """How often each segment of a job was planned with audio that was there, by index."""
    return _counts(conn, job_id, "reuse")


def all_reuses(conn: Connection) -> int:
    """How many segments of all jobs were planned so."""
    return int(
        conn.execute(text("SELECT count(*) FROM storm_witness WHERE what = 'reuse'")).scalar_one()
    )


def _counts(conn: Connection, job_id: str, what: str) -> dict[int, int]:
    rows = conn.execute(
        text(
            "SELECT number, count(*) FROM storm_witness"
            " WHERE job_id = :job_id AND what = :what GROUP BY number"
        ),
        {"job_id": job_id, "what": what},
    )
    return {row[0]: row[1] for row in rows}
