"""Refuses requests that a web page could trick a browser into sending to a loopback API.

A page on a name that re-resolves to 127.0.0.1 (DNS rebinding) is seen by its Host header; a form
posted from another site by its Origin. Where clients authenticate, here by a key or at a proxy in
front, both attacks fail by themselves, so a caller with a key is let through whatever the name.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.auth import caller_in, is_loopback
from api.problems import usage_problem
from shared.errors import UsageError

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class HostGuard:
    """Lets through what names this machine, and changes only from its own origin."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 or 403, or pass the request on."""
        caller = caller_in(scope)
        by_key = caller is not None and caller.key_id is not None
        if scope["type"] == "http" and not by_key:
            try:
                _check(scope["method"], Headers(scope=scope))
            except UsageError as error:
                await usage_problem(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _check(method: str, headers: Headers) -> None:
    host = headers.get("host", "")
    name = _hostname(f"//{host}")
    if name is None or not is_loopback(name):
        raise UsageError(
            "this API serves its own machine only: address it as localhost or 127.0.0.1",
            code="host-not-allowed",
        )
    if method in _SAFE_METHODS:
        return
    origin = headers.get("origin")
    foreign = origin is not None and origin.partition("://")[2].lower() != host.lower()
    if foreign or headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
        raise UsageError(
            "a page of another origin may not change anything here", code="cross-site-request"
        )


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
