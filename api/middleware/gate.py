"""The gate before everything but health and figures: who asks, and whether too often.

It stands before the body is read. A request that comes from nobody it knows is answered 401; one
too many 429. Every other answer tells how many more may follow (draft-ietf-httpapi-ratelimit-
headers-10: `RateLimit-Policy` and `RateLimit`).
"""

import math
import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.auth import set_caller
from api.keyring import Keyring, UnauthorizedError
from api.middleware.refusing import refuse
from api.problems import transient_problem, usage_problem
from api.rates import RateLimit, Verdict
from shared.errors import CapacityError, TransientError

OPEN_PATHS = frozenset({"/livez", "/readyz", "/metrics", "/openapi.json"})
_STRANGERS = "?"  # no tenant's name: all who fail to say who they are share one count


class Gate:
    """Lets a request in as its caller. `rates` None: nobody asks too often."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keyring: Keyring,
        rates: RateLimit | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._keyring = keyring
        self._rates = rates
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller noted, or answer 401, 429 or 503."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        refusal: Response | None = None
        try:
            caller = await self._keyring.caller(Headers(scope=scope).get("authorization"))
        except UnauthorizedError as error:
            refusal = _unauthorized(error)
            verdict = self._count(_STRANGERS)
        except TransientError as error:
            await refuse(transient_problem(error), scope, receive, send)
            return
        else:
            set_caller(scope, caller)
            verdict = self._count(caller.tenant)
        if verdict is not None and not verdict.allowed:
            refusal = _too_often(verdict)
        telling = send if verdict is None else _telling(send, verdict)
        if refusal is not None:
            await refuse(refusal, scope, receive, telling)
        else:
            await self._app(scope, receive, telling)

    def _count(self, caller: str) -> Verdict | None:
        return None if self._rates is None else self._rates.hit(caller, self._clock())


def _unauthorized(error: UnauthorizedError) -> Response:
    response = usage_problem(error)
    fault = ', error="invalid_token"' if error.presented else ""
    response.headers["www-authenticate"] = f'Bearer realm="voxfarm"{fault}'
    return response


def _too_often(verdict: Verdict) -> Response:
    return transient_problem(
        CapacityError(
            f"more than {verdict.limit:,} requests within {verdict.window_s} s",
            code="rate-limited",
            retry_after_s=verdict.reset_s,
        )
    )


def _telling(send: Send, verdict: Verdict) -> Send:
    """Add to the answer how many more requests may follow, and when there is room again."""

    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            reset_s = math.ceil(verdict.reset_s)
            headers["ratelimit-policy"] = f'"tenant";q={verdict.limit};w={verdict.window_s}'
            headers["ratelimit"] = f'"tenant";r={verdict.remaining};t={reset_s}'
        await send(message)

    return tell
