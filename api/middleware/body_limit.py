"""Cuts request bodies off at a size and at a silence, before anything holds them in memory.

A declared length is judged before the first byte is read; an undeclared one is counted as it
comes. Knows nothing of what the bytes mean.
"""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.middleware.refusing import refuse
from api.problems import usage_problem
from shared.errors import UsageError


class BodyLimit:
    """Answers 413 to a body over `max_bytes`, and 408 to one silent for `silence_s` seconds.

    After refusing it reads on and discards for up to `linger_s`, so that a client busy sending
    reads the answer instead of a reset connection; then the connection is closed.
    """

    def __init__(
        self, app: ASGIApp, *, max_bytes: int, silence_s: float = 30.0, linger_s: float = 2.0
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._silence_s = silence_s
        self._linger_s = linger_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a counted body, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "")
        if declared.isdecimal() and _exceeds(declared, self._max_bytes):
            await self._refuse(self._too_large(), scope, receive, send)
            return
        body = _CountedBody(receive, self._max_bytes, self._silence_s)
        answered = False

        async def watched_send(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, body.receive, watched_send)
        except _TooLargeError:
            refusal = self._too_large()
        except _TooSlowError:
            refusal = UsageError(
                f"no byte of the body came for {self._silence_s:g} s", code="body-timeout"
            )
        else:
            return
        if not answered:  # an answer under way (to a request that needs no body) just ends
            await self._refuse(refusal, scope, receive, send)

    async def _refuse(
        self, refusal: UsageError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        response = usage_problem(refusal)
        response.headers["connection"] = "close"
        await refuse(response, scope, receive, send, linger_s=self._linger_s)

    def _too_large(self) -> UsageError:
        return UsageError(
            f"the body is larger than {self._max_bytes:,} bytes",
            code="body-too-large",
            max_bytes=self._max_bytes,
        )


def _exceeds(declared: str, max_bytes: int) -> bool:
    digits = declared.lstrip("0")
    return len(digits) > len(str(max_bytes)) or int(digits or "0") > max_bytes


class _TooLargeError(Exception):
    """Raised out of `receive`, so that whoever reads the body stops."""


class _TooSlowError(Exception):
    """Likewise, when the client has fallen silent."""


class _CountedBody:
    """Wraps `receive` while a request's body comes in."""

    def __init__(self, receive: Receive, max_bytes: int, silence_s: float) -> None:
        self._receive = receive
        self._left = max_bytes
        self._silence_s = silence_s
        self._complete = False

    async def receive(self) -> Message:
        """The next message; once the body is complete, waits without a limit for the next."""
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout(self._silence_s):
                message = await self._receive()
        except TimeoutError:
            raise _TooSlowError from None
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            if self._left < 0:
                raise _TooLargeError
        return message
