"""Whether this process could do its work now: every part it needs is asked, each by itself."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel, ConfigDict

from shared.errors import VoxfarmError

log = logging.getLogger(__name__)
FRESH_S = 1.0


class Check(BaseModel):
    """One part's answer."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    detail: str


class Readiness:
    """Asks all parts at once, at most once a second however many probes come.

    A check returns a word of detail or raises, best a VoxfarmError. One that has not answered
    within `timeout_s` counts as failed; its thread is left to end by its own network time-outs,
    and the limit on threads keeps such leftovers from piling up.
    """

    def __init__(
        self,
        checks: Mapping[str, Callable[[], str]],
        *,
        timeout_s: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._checks = checks
        self._timeout_s = timeout_s
        self._clock = clock
        self._threads = CapacityLimiter(4 * len(checks))
        self._one_at_a_time = asyncio.Lock()
        self._known: dict[str, Check] = {}
        self._known_at = float("-inf")

    async def look(self) -> dict[str, Check]:
        """Every part's answer, by name, at most a second old."""
        async with self._one_at_a_time:
            if self._clock() - self._known_at > FRESH_S:
                answers = await asyncio.gather(*map(self._ask, self._checks.values()))
                self._known = dict(zip(self._checks, answers, strict=True))
                self._known_at = self._clock()
            return self._known

    async def _ask(self, check: Callable[[], str]) -> Check:
        try:
            async with asyncio.timeout(self._timeout_s):
                detail = await to_thread.run_sync(
                    check, abandon_on_cancel=True, limiter=self._threads
                )
        except TimeoutError:
            return Check(ok=False, detail=f"no answer within {self._timeout_s:g} s")
        except VoxfarmError as error:
            log.info("not ready: %s", error)
            return Check(ok=False, detail=str(error))
        except Exception as error:
            log.exception("a readiness check failed unexpectedly")
            return Check(ok=False, detail=type(error).__name__)
        return Check(ok=True, detail=detail)
