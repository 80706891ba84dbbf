import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from api.middleware.body_limit import BodyLimit

SCOPE: Scope = {"type": "http", "method": "POST", "path": "/", "headers": []}


async def reading_app(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"{len(body)} bytes")(scope, receive, send)


def answer_of(*sent: bytes, silence_s: float = 5, complete: bool = True) -> tuple[int, bytes]:
    """Status and body that a client gets who sends these pieces and then falls silent."""
    pieces = [{"type": "http.request", "body": piece, "more_body": True} for piece in sent]
    if complete and pieces:
        pieces[-1]["more_body"] = False
    answered: list[Message] = []

    async def receive() -> Message:
        if pieces:
            return pieces.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        answered.append(message)

    app = BodyLimit(reading_app, max_bytes=10, silence_s=silence_s, linger_s=0.01)
    asyncio.run(app(SCOPE, receive, send))
    assert answered[-1].get("more_body", False) is False
    return answered[0]["status"], b"".join(message.get("body", b"") for message in answered)


def test_a_body_within_the_limit_passes() -> None:
    assert answer_of(b"12345", b"67890") == (200, b"10 bytes")


def test_one_byte_more_is_refused_however_it_is_cut() -> None:
    for pieces in ([b"12345678901"], [b"1"] * 11, [b"", b"1234567890", b"", b"1"]):
        status, body = answer_of(*pieces)
        assert status == 413
        assert b"body-too-large" in body


def test_a_client_that_falls_silent_is_let_go() -> None:
    status, body = answer_of(b"123", silence_s=0.01, complete=False)
    assert status == 408
    assert b"body-timeout" in body
