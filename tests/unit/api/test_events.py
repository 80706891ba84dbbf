import asyncio
import json
from collections.abc import Sequence
from typing import Any

from api.events import job_events
from api.views.job import JOB_EXAMPLE, JobView
from shared.errors import LedgerBusyError, NotFoundError
from shared.jobs import JobState


def view(**changes: Any) -> JobView:
    progress = JobView.model_validate(JOB_EXAMPLE).progress.model_copy(
        update=changes.pop("progress", {})
    )
    return JobView.model_validate(JOB_EXAMPLE).model_copy(update={**changes, "progress": progress})


class Ledger:
    """Answers with each of the given views or errors in turn, and the last one for ever."""

    def __init__(self, answers: Sequence[JobView | Exception]) -> None:
        self.looks = 0
        self._answers = answers

    async def look(self) -> JobView:
        answer = self._answers[min(self.looks, len(self._answers) - 1)]
        self.looks += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


async def collect(
    ledger: Ledger, *, stop_after: int | None = None, heartbeat_s: float = 60
) -> list[str]:
    stopping = asyncio.Event()
    told = []
    events = job_events(ledger.look, stopping, look_every_s=0.001, heartbeat_s=heartbeat_s)
    async for chunk in events:
        told.append(chunk.decode())
        if len(told) == stop_after:
            stopping.set()
    return told


def kinds(told: Sequence[str]) -> list[str]:
    return [line[7:] for chunk in told for line in chunk.splitlines() if line.startswith("event: ")]


ENDED = view(state=JobState.COMPLETED)


def test_every_move_is_told_once_and_the_end_last() -> None:
    half = view(progress={"segments_done": 1})
    whole = view(progress={"segments_done": 2})
    told = asyncio.run(collect(Ledger([half, half, half, whole, whole, ENDED])))
    assert kinds(told) == ["progress", "progress", "end"]
    data = told[-1].split("data: ")[1]
    assert json.loads(data)["state"] == "completed"
    assert told[-1].endswith("\n\n")


def test_a_job_that_has_ended_is_told_at_once() -> None:
    ledger = Ledger([ENDED])
    assert kinds(asyncio.run(collect(ledger))) == ["end"]
    assert ledger.looks == 1


def test_a_ticking_estimate_alone_is_no_move() -> None:
    ticking = [view(progress={"eta_s": float(left)}) for left in range(9, 0, -1)]
    assert kinds(asyncio.run(collect(Ledger([*ticking, ENDED])))) == ["progress", "end"]


def test_a_still_job_gets_heartbeats_that_clients_read_over() -> None:
    told = asyncio.run(collect(Ledger([view()]), stop_after=5, heartbeat_s=0.002))
    assert kinds(told) == ["progress"]
    assert told[2:] == [": still here\n\n"] * 3


def test_a_ledger_that_is_away_for_a_while_does_not_break_the_stream() -> None:
    away = LedgerBusyError("locked")
    told = asyncio.run(collect(Ledger([away, view(), away, away, ENDED])))
    assert kinds(told) == ["progress", "end"]


def test_a_deleted_job_ends_the_stream_without_an_end_event() -> None:
    told = asyncio.run(collect(Ledger([view(), NotFoundError("gone")])))
    assert kinds(told) == ["progress"]


def test_a_stopping_server_ends_the_stream_so_that_the_client_asks_elsewhere() -> None:
    told = asyncio.run(collect(Ledger([view()]), stop_after=2))
    assert kinds(told) == ["progress"]
