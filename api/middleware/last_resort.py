"""Turns an error nobody foresaw into a 500 problem with an id, and logs where it happened.

The log gets the error's class and the code lines it passed, never its message: a database error,
for one, quotes the values it was given, and those are somebody's text.
"""

import logging
import traceback
from uuid import uuid4

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import problem

log = logging.getLogger(__name__)


class LastResort:
    """Catches what no handler caught. A client that hung up is no error."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; answer 500 if it fails before the response began."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - the last resort
            error_id = uuid4().hex
            log.error(  # noqa: TRY400 - the traceback is logged without the message
                "error %s: %s\n%s", error_id, _class_names(error), _lines(error)
            )
            if started:
                # Only breaking the connection off tells the client that something is missing.
                raise ResponseCutShortError(error_id) from None
            response = problem(
                500,
                "internal-error",
                f"something went wrong here; the log has more under {error_id}",
                fields={"error_id": error_id},
            )
            await response(scope, receive, send)


class ResponseCutShortError(Exception):
    """A response had begun when its error came; the message is the id it was logged under."""


def _class_names(error: BaseException) -> str:
    names = []
    link: BaseException | None = error
    while link is not None:
        names.append(f"{type(link).__module__}.{type(link).__qualname__}")
        link = link.__cause__
    return " from ".join(names)


def _lines(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__))
