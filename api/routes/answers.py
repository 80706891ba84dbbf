"""What several routes ask for and answer, and how that is written into the documentation."""

from typing import Any

from starlette.datastructures import Headers

from api.problems import MEDIA_TYPE, members
from api.submission import BOOK_EXAMPLE, EXAMPLE
from shared.errors import UsageError

SUBMISSION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Submission"},
                "examples": {
                    "text": {"summary": "One text", "value": EXAMPLE},
                    "chapters": {"summary": "A book by chapters", "value": BOOK_EXAMPLE},
                },
            }
        },
    }
}

_MEANING = {
    400: "The body is not sound JSON.",
    401: "No key, or one that does not count; see `WWW-Authenticate`.",
    403: "Not allowed here.",
    404: "There is no such thing, or it is not yours.",
    409: "Right request, wrong moment.",
    410: "The job has expired, and its files with it.",
    413: "Too large.",
    415: "Not application/json.",
    422: "Well formed, but it cannot be done; `code` says why.",
    429: "Too many requests, or too much waiting; try again after `Retry-After` seconds.",
    503: "A part of the farm is away, or the farm is full; try again after `Retry-After` seconds.",
}

# One telling example each; `code` is what programs go by.
_EXAMPLE: dict[int, dict[str, Any]] = {
    400: {"code": "bad-json", "detail": "not valid JSON: ... at line 3, column 1", "offset": 21},
    401: {"code": "unauthorized", "detail": "there is no such key, or it was revoked"},
    403: {"code": "testing-engine", "detail": "engine tone is for testing only", "choices": []},
    404: {"code": "job-not-found", "detail": "there is no such job"},
    409: {"code": "idempotency-key-reused", "detail": "this Idempotency-Key was used before"},
    410: {"code": "job-expired", "detail": "the job has expired, and its files with it"},
    413: {"code": "body-too-large", "detail": "the body is too large", "max_bytes": 33_554_432},
    415: {"code": "unsupported-media-type", "detail": "the body must be application/json"},
    422: {
        "code": "unspeakable-text",
        "detail": "engine hibari cannot speak Han script, which starts at character 8 of text",
        "field": "text",
        "offset": 8,
        "languages": ["en"],
    },
    429: {"code": "over-quota", "detail": "40 jobs of this tenant are alive; 40 is the most"},
    503: {"code": "ledger-away", "detail": "the SQL database is busy or away; try again"},
}

Responses = dict[int | str, dict[str, Any]]


def refusals(*statuses: int) -> Responses:
    """OpenAPI responses for these problem statuses."""
    return {
        status: {
            "description": _MEANING[status],
            "content": {
                MEDIA_TYPE: {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                    "example": members(status, **_EXAMPLE[status]),
                }
            },
        }
        for status in statuses
    }


def require_json(headers: Headers) -> None:
    """Refuse a body that is not plain JSON in UTF-8. Raises UsageError."""
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        raise UsageError(
            "the body must be application/json in UTF-8", code="unsupported-media-type"
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise UsageError("compressed bodies are not read here", code="unsupported-media-type")
