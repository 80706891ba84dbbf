"""A job's progress as server-sent events: looks at the ledger and tells what has changed.

Every event is the whole job view, so a client that reconnects misses nothing and needs no
`Last-Event-ID`. Between looks nothing is held: no thread, no connection, no lock.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from api.views.job import JobView
from shared.errors import NotFoundError, TransientError

log = logging.getLogger(__name__)
LOOK_EVERY_S = 0.5
HEARTBEAT_S = 10.0
RETRY_MS = 2_000


async def job_events(
    look: Callable[[], Awaitable[JobView]],
    stopping: asyncio.Event,
    *,
    look_every_s: float = LOOK_EVERY_S,
    heartbeat_s: float = HEARTBEAT_S,
) -> AsyncIterator[bytes]:
    """Yield `progress` while the job moves, comments while it does not, and `end` with its end.

    Ends without `end` when the server stops or the job is deleted; the client then asks again.
    While the ledger is away it keeps the stream open.
    """
    yield f"retry: {RETRY_MS}\n\n".encode()
    told: JobView | None = None
    silent_s = 0.0
    while not stopping.is_set():
        view: JobView | None = None
        try:
            view = await look()
        except TransientError as error:
            log.warning("progress waits: %s", error)
        except NotFoundError:
            return
        if view is not None and view.state.ended:
            yield _event("end", view)
            return
        if view is not None and _moved(told, view):
            yield _event("progress", view)
            told, silent_s = view, 0.0
        elif silent_s >= heartbeat_s:
            yield b": still here\n\n"
            silent_s = 0.0
        await _wait(stopping, look_every_s)
        silent_s += look_every_s


def _moved(told: JobView | None, view: JobView) -> bool:
    """True when something other than the ever-ticking estimate has changed."""
    return told is None or _without_eta(told) != _without_eta(view)


def _without_eta(view: JobView) -> JobView:
    return view.model_copy(update={"progress": view.progress.model_copy(update={"eta_s": None})})


def _event(kind: str, view: JobView) -> bytes:
    return f"event: {kind}\ndata: {view.model_dump_json()}\n\n".encode()


async def _wait(stopping: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return
