"""The database's clock as a SQL expression. No process's own clock decides a lease."""

from typing import Any

from sqlalchemy import Connection, Float, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction


class db_now(GenericFunction[float]):  # noqa: N801 - SQL functions are lower case
    """Seconds since the epoch, at millisecond precision or better."""

    type = Float(53)
    inherit_cache = True


@compiles(db_now, "sqlite")
def _sqlite(_element: db_now, _compiler: Any, **_kw: Any) -> str:  # noqa: ANN401
    # SQLite's clock goes by milliseconds. Rounded to them, what is read in two ways within one is
    # equal: a time just written never lies in the future of who looks next.
    return "round((julianday('now') - 2440587.5) * 86400.0, 3)"


@compiles(db_now, "postgresql")
def _postgresql(_element: db_now, _compiler: Any, **_kw: Any) -> str:  # noqa: ANN401
    # clock_timestamp, not now(): a transaction that waited for a lock must see the present.
    return "extract(epoch from clock_timestamp())::float8"


def read_clock(conn: Connection) -> float:
    """The database's present time, in epoch seconds.

    To the microsecond, which is what answers are written in: a time read from an answer must be
    exactly the one that its row holds.
    """
    return round(float(conn.execute(select(db_now())).scalar_one()), 6)
