"""Insert a row, or change or leave the one that is there, in the words of each database."""

from collections.abc import Mapping

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def upsert(
    conn: Connection, table: Table, keys: tuple[str, ...], values: Mapping[str, object]
) -> None:
    """Write `values`; `keys` name the primary key among them."""
    insert = sqlite.insert if conn.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).values(**values)
    changed = {name: statement.excluded[name] for name in values if name not in keys}
    conn.execute(statement.on_conflict_do_update(index_elements=list(keys), set_=changed))


def insert_or_skip(conn: Connection, table: Table, values: Mapping[str, object]) -> None:
    """Write `values`, unless a row stands in the way of a unique constraint."""
    insert = sqlite.insert if conn.dialect.name == "sqlite" else postgresql.insert
    conn.execute(insert(table).values(**values).on_conflict_do_nothing())
