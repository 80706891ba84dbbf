"""Finds out who a key belongs to, from a copy of the ledger's keys that is seconds old at most.

The id in a key finds the digest, and exactly one comparison in constant time follows, whatever was
presented: no timing tells how much of a secret is right. A key just made is found at once, and yet
a flood of unknown ones makes no more than 20 looks into the ledger a second.
"""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from anyio import CapacityLimiter, to_thread

from api.auth import ANYBODY, Caller
from shared.api_keys import digest, key_id_of
from shared.errors import LedgerBusyError, UsageError
from shared.ledger.keys import KeyRecord

FRESH_S = 2.0  # a revoked key works this long at most
LOOK_EVERY_S = 0.05  # unknown keys wait for the next look at most this long
_AWAY_S = 1.0  # after a failed look nobody waits for another one so long
LOCAL_KEY_ID = "local"


class UnauthorizedError(UsageError):
    """The request must name its caller by a key, and does not. `presented`: it tried to."""

    def __init__(self, message: str, *, presented: bool) -> None:
        super().__init__(message, code="unauthorized")
        self.presented = presented


@dataclass(frozen=True, slots=True)
class Keys:
    """All keys that count, and whether there has ever been one."""

    records: tuple[KeyRecord, ...]
    ever_created: bool


class Keyring:
    """One process's copy of the keys. For the event loop's thread only.

    `load` blocks on the ledger and may raise LedgerBusyError. `anybody`: while no key was ever
    made, requests without one are served. `local_key` is one more key, of the tenant `default`.
    """

    def __init__(
        self,
        load: Callable[[], Keys],
        *,
        anybody: bool,
        local_key: str = "",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        same: Callable[[str, str], bool] = hmac.compare_digest,
    ) -> None:
        self._load = load
        self._anybody = anybody
        self._local_sha256 = digest(local_key) if local_key else None
        self._clock = clock
        self._sleep = sleep
        self._same = same
        self._no_such_sha256 = digest("")  # no key: not of their form, so it equals none
        self._one_at_a_time = asyncio.Lock()
        self._thread = CapacityLimiter(1)
        self._by_id: Mapping[str, KeyRecord] = {}
        self._ever_created = True
        self._loaded_at = float("-inf")
        self._failed_at = float("-inf")

    async def caller(self, authorization: str | None) -> Caller:
        """Who presents this `Authorization`. Raises UnauthorizedError, LedgerBusyError.

        A key that is presented must be right, also where none is needed.
        """
        if authorization is None:
            await self._refresh(self._clock() - FRESH_S)
            if self._ever_created or not self._anybody:
                raise UnauthorizedError(
                    "this farm wants an API key: Authorization: Bearer vxf_...", presented=False
                )
            return ANYBODY
        scheme, _, text = authorization.partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not text:
            raise UnauthorizedError("keys come as: Authorization: Bearer vxf_...", presented=True)
        sha256 = digest(text)
        if self._local_sha256 is not None and hmac.compare_digest(sha256, self._local_sha256):
            return Caller(key_id=LOCAL_KEY_ID)
        key_id = key_id_of(text)
        arrived_at = self._clock()
        await self._refresh(arrived_at - FRESH_S)
        if key_id is not None and key_id not in self._by_id and self._loaded_at < arrived_at:
            await self._sleep(max(0.0, self._loaded_at + LOOK_EVERY_S - self._clock()))
            await self._refresh(arrived_at)
        record = None if key_id is None else self._by_id.get(key_id)
        known = self._no_such_sha256 if record is None else record.sha256
        if not self._same(sha256, known) or record is None:
            raise UnauthorizedError("there is no such key, or it was revoked", presented=True)
        return Caller(record.tenant, record.tiers, record.quota, record.id)

    async def still_counts(self, caller: Caller) -> bool:
        """Whether a caller found before would be let in now; for answers that go on for long."""
        if caller.key_id == LOCAL_KEY_ID:
            return True
        await self._refresh(self._clock() - FRESH_S)
        if caller.key_id is None:
            return self._anybody and not self._ever_created
        return caller.key_id in self._by_id

    async def _refresh(self, since: float) -> None:
        """Have a copy of that moment or later; of many who want one, one loads it."""
        if self._loaded_at >= since:
            return
        async with self._one_at_a_time:
            if self._loaded_at >= since:
                return
            now = self._clock()
            if now - self._failed_at <= _AWAY_S:
                raise LedgerBusyError("the keys cannot be read: the ledger is busy or away")
            try:
                keys = await to_thread.run_sync(self._load, limiter=self._thread)
            except LedgerBusyError:
                self._failed_at = self._clock()
                raise
            self._by_id = {record.id: record for record in keys.records}
            self._ever_created = keys.ever_created
            self._loaded_at = now
