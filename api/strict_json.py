"""Reads one JSON request body strictly, in bounded time and memory. Knows no field and no route.

Python's own parser does the work; this module refuses what it would let through: bytes that are
not UTF-8, names given twice, NaN and infinities, numbers no field could hold, lone surrogates,
nesting, and bodies made of so many tiny values that the parsed form would dwarf the text.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import NoReturn

from shared.errors import UsageError

MAX_DEPTH = 16
MAX_VALUES = 100_000
_MAX_DIGITS = 40
_NAME_SHOWN = 80

# A string literal, or the rest of the body when one is left open: so the scan stays linear.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def read_json(body: bytes) -> object:
    """The value in `body`; raises UsageError with a code and an offset for anything unsound."""
    source = _decode(body)
    if not source.strip():
        raise UsageError("the body is empty; a JSON object is expected", code="bad-json", offset=0)
    _check_shape(source)
    try:
        value: object = json.loads(
            source,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_int,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        raise UsageError(
            f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            code="bad-json",
            offset=error.pos,
            line=error.lineno,
            column=error.colno,
        ) from None
    _check_surrogates(value)
    return value


def _decode(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the body is not valid UTF-8 at byte {error.start}",
            code="bad-utf8",
            offset=error.start,
        ) from None


def _check_shape(source: str) -> None:
    skeleton = _STRING.sub("", source)
    values = 1 + sum(map(skeleton.count, ",[{"))
    if values > MAX_VALUES:
        raise UsageError(
            f"the body holds more than {MAX_VALUES:,} JSON values", code="json-too-complex"
        )
    depth = 0
    for bracket in _BRACKET.finditer(skeleton):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > MAX_DEPTH:
            raise UsageError(f"the body nests deeper than {MAX_DEPTH} levels", code="json-too-deep")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                shown = shown_name(name)
                raise UsageError(
                    f"the name {shown!r} is given twice in one object",
                    code="duplicate-key",
                    name=shown,
                )
            seen.add(name)
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise UsageError(f"{name} is not a JSON number", code="bad-number")


def _int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise UsageError(f"a number of {len(digits):,} digits is out of range", code="bad-number")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise UsageError("a number is too large to be represented", code="bad-number")
    return number


def _check_surrogates(value: object) -> None:
    for path, text in _strings(value, ()):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            field = ".".join(path)
            raise UsageError(
                f"{field or 'the body'} holds half a surrogate pair at character {error.start}",
                code="lone-surrogate",
                field=field,
                offset=error.start,
            ) from None


def _strings(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, str(index)))
    elif isinstance(value, dict):
        for name, item in value.items():
            shown = shown_name(name)
            yield (*path, shown), name
            yield from _strings(item, (*path, shown))


def shown_name(name: str) -> str:
    """A member name made safe to show in a problem: short, and free of odd characters."""
    plain = name.encode("ascii", "backslashreplace").decode()
    plain = "".join(c if c.isprintable() else "?" for c in plain)
    return plain if len(plain) <= _NAME_SHOWN else plain[:_NAME_SHOWN] + "..."
