"""Insert a row, or change or leave the one that is there, in the words of each database."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert


def upsert(
    conn: Connection, table: Table, keys: tuple[str, ...], values: Mapping[str, object]
) -> None:
    """Write `values`; `keys` name the primary key among them."""
    conn.execute(_upsert(conn.dialect.name, table, keys, values).values(**values))


def upserts(table: Table, keys: tuple[str, ...]) -> dict[str, Insert]:
    """By database, the statement that writes whole rows given to it: for what is written often."""
    columns = [column.name for column in table.columns]
    return {name: _upsert(name, table, keys, columns) for name in ("sqlite", "postgresql")}


def _upsert(dialect: str, table: Table, keys: tuple[str, ...], names: Collection[str]) -> Insert:
    statement = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(table)
    changed = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=list(keys), set_=changed)


def insert_or_skip(conn: Connection, table: Table, values: Mapping[str, object]) -> None:
    """Write `values`, unless a row stands in the way of a unique constraint."""
    insert = sqlite.insert if conn.dialect.name == "sqlite" else postgresql.insert
    conn.execute(insert(table).values(**values).on_conflict_do_nothing())
