"""How refusals are written into the API's documentation."""

from typing import Any

from api.problems import MEDIA_TYPE

_MEANING = {
    400: "The body is not sound JSON.",
    403: "Not allowed here.",
    404: "There is no such thing, or it is not yours.",
    409: "Right request, wrong moment.",
    413: "Too large.",
    415: "Not application/json.",
    422: "Well formed, but it cannot be done; `code` says why.",
    503: "A part of the farm is away; try again after `Retry-After` seconds.",
}

Responses = dict[int | str, dict[str, Any]]


def refusals(*statuses: int) -> Responses:
    """OpenAPI responses for these problem statuses."""
    return {
        status: {
            "description": _MEANING[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }
