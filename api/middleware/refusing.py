"""Answering a request whose body was not read, so that the client gets to read the answer.

A client busy sending would else find its connection reset. Knows nothing of why it is refused.
"""

import asyncio

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

LINGER_S = 2.0
_SMALL_BYTES = 64 * 1024  # comes in whole before its client could notice


async def refuse(
    response: Response, scope: Scope, receive: Receive, send: Send, *, linger_s: float = LINGER_S
) -> None:
    """Answer, and read on and discard the body for up to `linger_s` seconds.

    Behind a body that is large, or of unknown length, the connection is closed.
    """
    headers = Headers(scope=scope)
    # A client that waits for "100 Continue" has sent nothing, and reading would invite it.
    waiting = "100-continue" in headers.get("expect", "").lower()

    async def send_then_linger(message: Message) -> None:
        if message["type"] != "http.response.body" or waiting:
            await send(message)
            return
        await send({**message, "more_body": True})
        await _discard(receive, linger_s)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    if waiting or not _is_small(headers):
        response.headers["connection"] = "close"
    await response(scope, receive, send_then_linger)


def _is_small(headers: Headers) -> bool:
    if "transfer-encoding" in headers:
        return False
    declared = headers.get("content-length", "0")
    return declared.isdecimal() and len(declared) < 8 and int(declared) <= _SMALL_BYTES  # noqa: PLR2004


async def _discard(receive: Receive, linger_s: float) -> None:
    try:
        async with asyncio.timeout(linger_s):
            while True:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
