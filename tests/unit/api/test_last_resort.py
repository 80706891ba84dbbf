import asyncio
import logging

import pytest
from starlette.types import Message, Receive, Scope, Send

from api.middleware.last_resort import LastResort, ResponseCutShortError

SCOPE: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}

CANARY = "it sings"


async def receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def test_a_response_already_begun_is_broken_off_and_the_cause_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[Message] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError(CANARY)

    async def send(message: Message) -> None:
        sent.append(message)

    with caplog.at_level(logging.DEBUG), pytest.raises(ResponseCutShortError) as caught:
        asyncio.run(LastResort(app)(SCOPE, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert str(caught.value) in caplog.text
    assert "builtins.ValueError" in caplog.text
    assert CANARY not in caplog.text
    assert CANARY not in str(caught.value)
