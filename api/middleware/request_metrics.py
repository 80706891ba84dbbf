"""Counts and times every request by the template of its path. Knows no job and no tenant."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.metrics import Metrics


class RequestMetrics:
    """Reports each request once, when its answer begins."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and watch when the answer begins."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def watched_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "unmatched")
                elapsed_s = time.perf_counter() - began
                self._metrics.answered(scope["method"], route, message["status"], elapsed_s)
            await send(message)

        await self._app(scope, receive, watched_send)
