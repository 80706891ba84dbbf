"""What requests are served with, built once by the app factory, and how handlers ask for it."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Path, Request
from sqlalchemy import Connection

from api.admission import Admission
from api.keyring import Keyring
from api.load import LoadGauge
from api.metrics import Metrics
from api.outlooks import Outlooks
from api.readiness import Readiness
from api.waking import Waker
from shared.errors import NotFoundError
from shared.farm import Farm
from shared.farm_secret import load_farm_secret
from shared.webhook_secrets import SigningSecrets

T = TypeVar("T")
PATIENCE_S = 5.0  # a request would rather hear 503 than wait longer for the ledger
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True, slots=True)
class Deps:
    """One app's means. The limits keep a flood of one kind of work from taking every thread."""

    farm: Farm
    admission: Admission
    metrics: Metrics
    readiness: Readiness
    waker: Waker
    keyring: Keyring
    load: LoadGauge
    outlooks: Outlooks
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    submits: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(2))
    quotes: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))
    watches: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(4))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read from the ledger, in the calling thread. Raises LedgerBusyError."""
        return self.farm.database.read(work, patience_s=PATIENCE_S)

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Change the ledger, in the calling thread. Raises LedgerBusyError."""
        return self.farm.database.transact(work, patience_s=PATIENCE_S)

    def signing_secrets(self) -> SigningSecrets:
        """The secrets of webhooks; read when they are needed, for few processes need them."""
        return SigningSecrets(load_farm_secret(self.farm.settings))

    async def watch(self, work: Callable[[Connection], T]) -> T:
        """Read from the ledger on behalf of somebody who looks again and again."""
        return await to_thread.run_sync(self.read, work, limiter=self.watches)


async def _deps_of(request: Request) -> Deps:
    deps: Deps = request.app.state.deps
    return deps


async def _job_id_of(
    job_id: Annotated[str, Path(description="a job's id", examples=["01KB9Z7Q4C4F6W8Y2N3M5P7R9T"])],
) -> str:
    if not _ID.fullmatch(job_id):
        raise NotFoundError("there is no such job", code="job-not-found")
    return job_id


async def _webhook_id_of(webhook_id: Annotated[str, Path(description="a webhook's id")]) -> str:
    if not _ID.fullmatch(webhook_id):
        raise NotFoundError("there is no such webhook", code="webhook-not-found")
    return webhook_id


async def _delivery_id_of(
    delivery_id: Annotated[str, Path(description="a delivery's id")],
) -> str:
    if not _ID.fullmatch(delivery_id):
        raise NotFoundError("there is no such delivery", code="delivery-not-found")
    return delivery_id


With = Annotated[Deps, Depends(_deps_of)]
JobId = Annotated[str, Depends(_job_id_of)]
WebhookId = Annotated[str, Depends(_webhook_id_of)]
DeliveryId = Annotated[str, Depends(_delivery_id_of)]
