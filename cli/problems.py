"""The farm's refusals (RFC 9457 problem+json) as errors of our own tree. Pure."""

import json

import httpx

from shared.errors import (
    CapacityError,
    ConflictError,
    FatalError,
    NotFoundError,
    UsageError,
    VoxfarmError,
)

_NO_ROOM = frozenset({"farm-full", "over-quota", "rate-limited"})
_TOLD_ELSEWHERE = frozenset({"type", "title", "status", "detail", "code", "instance"})


def error_of(response: httpx.Response) -> VoxfarmError:
    """Return the error behind a 4xx or 5xx response whose body has been read."""
    problem = _problem(response)
    status = response.status_code
    if problem is None:
        return FatalError(
            f"{response.url.copy_with(query=None)} answered {status} "
            f"{response.reason_phrase} and does not look like a Voxfarm API"
        )
    code = str(problem.get("code") or "bad-request")
    message = _message(problem, status)
    fields = {str(k): v for k, v in problem.items() if k not in _TOLD_ELSEWHERE}
    for word in ("message", "self"):  # would collide with the error's own parameters
        fields.pop(word, None)
    if status == httpx.codes.NOT_FOUND:
        return NotFoundError(message, code=code, **fields)
    if status == httpx.codes.CONFLICT:
        return ConflictError(message, code=code, **fields)
    if code in _NO_ROOM:
        return CapacityError(message, code=code, retry_after_s=retry_after_s(response))
    if status < httpx.codes.INTERNAL_SERVER_ERROR:
        return UsageError(message, code=code, **fields)
    return FatalError(message)


def retry_after_s(response: httpx.Response) -> float:
    """How many seconds the farm asks to wait; 0 when it does not say."""
    try:
        return max(0.0, float(response.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0


def _problem(response: httpx.Response) -> dict[str, object] | None:
    if "json" not in response.headers.get("content-type", ""):
        return None
    try:
        body = json.loads(response.content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _message(problem: dict[str, object], status: int) -> str:
    said = str(problem.get("detail") or problem.get("title") or f"refused with status {status}")
    choices = problem.get("choices")
    if isinstance(choices, list) and choices:
        missing = [str(choice) for choice in choices if str(choice) not in said]
        if missing:
            said = f"{said.rstrip('.')}. Choices: {', '.join(str(choice) for choice in choices)}"
    return said
