"""Rows handed to a statement as one parameter, so that it is built once for any number of them.

Knows how each database reads a JSON list of rows; what is in them is up to the statement.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    String,
    TableValuedAlias,
    bindparam,
    cast,
    column,
    literal_column,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import TypeEngine


class given_rows(GenericFunction[Any]):  # noqa: N801 - SQL functions are lower case
    """A set-returning function over a JSON list: a column `value` for each of its elements."""

    inherit_cache = True


@compiles(given_rows, "sqlite")
def _sqlite(element: given_rows, compiler: Any, **kw: Any) -> str:  # noqa: ANN401
    return f"json_each({compiler.process(element.clauses, **kw)})"


@compiles(given_rows, "postgresql")
def _postgresql(element: given_rows, compiler: Any, **kw: Any) -> str:  # noqa: ANN401
    return f"json_array_elements(CAST({compiler.process(element.clauses, **kw)} AS json))"


def given(parameter: str) -> TableValuedAlias:
    """The rows that the parameter of this name holds: see `as_rows`."""
    rows = given_rows(bindparam(parameter, type_=String))
    return rows.table_valued(column("value"), name="given")


def field(rows: TableValuedAlias, place: int, kind: type[TypeEngine[Any]]) -> ColumnElement[Any]:
    """One field of each of these rows, by its place from 0."""
    return cast(rows.c.value.op("->>")(literal_column(str(place))), kind)


def as_rows(rows: Iterable[Sequence[str | int | float]]) -> str:
    """What to give such a parameter."""
    return json.dumps(list(rows))
