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

T = TypeVar("T")
PATIENCE_S = 5.0  # a request would rather hear 503 than wait longer for the ledger
_JOB_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


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

    async def watch(self, work: Callable[[Connection], T]) -> T:
        """Read from the ledger on behalf of somebody who looks again and again."""
        return await to_thread.run_sync(self.read, work, limiter=self.watches)


async def _deps_of(request: Request) -> Deps:
    deps: Deps = request.app.state.deps
    return deps


async def _job_id_of(
    job_id: Annotated[str, Path(description="a job's id", examples=["01KB9Z7Q4C4F6W8Y2N3M5P7R9T"])],
) -> str:
    if not _JOB_ID.fullmatch(job_id):
        raise NotFoundError("there is no such job", code="job-not-found")
    return job_id


With = Annotated[Deps, Depends(_deps_of)]
JobId = Annotated[str, Depends(_job_id_of)]
