"""Every refusal as RFC 9457 problem+json. Knows the failure tree; echoes no user text.

`code` is the stable word for programs; `type` is that word as a URN, `title` as a phrase.
Statuses follow from the class of the error, and from its code where one class is too wide.
"""

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from api.strict_json import shown_name
from shared.errors import (
    BrokerError,
    CapacityError,
    ConflictError,
    LedgerBusyError,
    NotFoundError,
    StoreError,
    TransientError,
    UsageError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5
MAX_FIELD_ERRORS = 20

# Codes whose status is not that of their class (a UsageError is 422: well formed, but not doable).
_STATUS_OF_CODE: dict[str, int] = {
    "bad-json": 400,
    "bad-number": 400,
    "bad-request": 400,
    "bad-utf8": 400,
    "duplicate-key": 400,
    "json-too-complex": 400,
    "json-too-deep": 400,
    "lone-surrogate": 400,
    "unauthorized": 401,
    "cross-site-request": 403,
    "larger-than-quota": 403,
    "tier-not-allowed": 403,
    "testing-engine": 403,
    "body-timeout": 408,
    "job-expired": 410,
    "body-too-large": 413,
    "text-too-long": 413,
    "unsupported-media-type": 415,
    "host-not-allowed": 421,
}
_AWAY: dict[type[TransientError], tuple[str, str]] = {
    LedgerBusyError: ("ledger-away", "the SQL database is busy or away; try again"),
    StoreError: ("store-away", "the object store is away; try again"),
    BrokerError: ("broker-away", "Redis is away; try again"),
}
_TOO_MUCH_OF_ONE = frozenset({"over-quota", "rate-limited"})  # the caller's doing, not the farm's
_RESERVED = frozenset({"type", "title", "status", "detail", "code"})


class FieldError(BaseModel):
    """One thing wrong with one field; the value itself is never repeated."""

    field: str = Field(description="dotted path, e.g. `pauses.sentence_s` or `query.limit`")
    message: str


class Problem(BaseModel):
    """An RFC 9457 problem. Further members depend on `code` (choices, offset, errors ...)."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "type": "urn:voxfarm:problem:unknown-voice",
                "title": "Unknown voice",
                "status": 422,
                "detail": "engine hibari has no voice 'bob'",
                "code": "unknown-voice",
                "choices": ["heart"],
            }
        },
    )

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="stable word for programs")


def members(status: int, code: str, detail: str, **fields: object) -> dict[str, object]:
    """The members of a problem; `type` and `title` follow from the code."""
    return {
        "type": f"urn:voxfarm:problem:{code}",
        "title": code.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
        **fields,
    }


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    fields: Mapping[str, object] | None = None,
) -> JSONResponse:
    """A problem response; `fields` become further members."""
    extra = {name: value for name, value in (fields or {}).items() if name not in _RESERVED}
    return JSONResponse(
        members(status, code, detail, **extra),
        status_code=status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


def usage_problem(error: UsageError) -> JSONResponse:
    """The response to a request that cannot be served as it stands."""
    if isinstance(error, NotFoundError):
        status = 404
    elif isinstance(error, ConflictError):
        status = 409
    else:
        status = _STATUS_OF_CODE.get(error.code, 422)
    return problem(status, error.code, str(error), fields=error.fields)


def transient_problem(error: TransientError) -> JSONResponse:
    """The 503 of trouble, whose details stay in the log, or of a full farm; 429 of too much."""
    if isinstance(error, CapacityError):
        return problem(
            429 if error.code in _TOO_MUCH_OF_ONE else 503,
            error.code,
            str(error),
            headers={"Retry-After": str(retry_after_s(error))},
            fields=error.fields,
        )
    code, detail = _AWAY.get(type(error), ("not-ready", str(error)))
    return problem(503, code, detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def retry_after_s(error: CapacityError) -> int:
    """Whole seconds to wait, at least one."""
    return max(1, math.ceil(error.retry_after_s))


def field_errors(errors: Sequence[Any], *, prefix: Sequence[str] = ()) -> list[dict[str, str]]:
    """Pydantic's findings as field paths and messages, bounded in number and length."""
    return [
        {
            "field": ".".join((*prefix, *(shown_name(str(step)) for step in error["loc"]))),
            "message": error["msg"],
        }
        for error in errors[:MAX_FIELD_ERRORS]
    ]


def install_problem_handlers(app: FastAPI) -> None:
    """Have the app answer every foreseen error as a problem."""

    async def on_usage(_request: Request, error: Exception) -> Response:
        assert isinstance(error, UsageError)  # noqa: S101 - registered for this class only
        return usage_problem(error)

    async def on_transient(_request: Request, error: Exception) -> Response:
        assert isinstance(error, TransientError)  # noqa: S101 - registered for this class only
        return transient_problem(error)

    async def on_parameters(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - likewise
        errors = field_errors(error.errors())
        detail = "; ".join(f"{found['field']}: {found['message']}" for found in errors)
        return problem(422, "invalid-parameter", detail, fields={"errors": errors})

    async def on_http(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - likewise
        phrase = HTTPStatus(error.status_code).phrase
        code = phrase.lower().replace(" ", "-").replace("'", "")
        return problem(
            error.status_code, code, _HTTP_DETAIL.get(code, phrase), headers=error.headers
        )

    app.add_exception_handler(UsageError, on_usage)
    app.add_exception_handler(TransientError, on_transient)
    app.add_exception_handler(RequestValidationError, on_parameters)
    app.add_exception_handler(HTTPException, on_http)


_HTTP_DETAIL = {
    "not-found": "there is nothing at this address; see /openapi.json",
    "method-not-allowed": "this address does not answer to this method; see the Allow header",
}
