"""Bring a ledger's schema to the newest revision. Safe to run from several processes at once."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from shared.ledger.database import Database


def migrate(database: Database) -> None:
    """Apply every migration that is missing, in one transaction that excludes other migrators."""

    def apply(conn: Connection) -> None:
        if conn.dialect.name == "postgresql":
            conn.execute(text("SELECT pg_advisory_xact_lock(hashtext('voxfarm:migrate'))"))
        config = alembic_config()
        config.attributes["connection"] = conn
        command.upgrade(config, "head")

    database.transact(apply)


def is_current(database: Database) -> bool:
    """True when the schema is at the newest revision this code knows."""
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    return database.read(
        lambda conn: MigrationContext.configure(conn).get_current_revision() == head
    )


def alembic_config() -> Config:
    """Alembic configuration pointing at the migrations inside this package."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config
