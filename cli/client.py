"""A small typed client of the farm's HTTP API, for the commands here and for other programs.

Every call may be repeated without harm (submits carry an Idempotency-Key), so calls are tried
again while the farm is away, for `patience_s`. It knows no files and prints nothing.

    with FarmClient("http://127.0.0.1:8080") as farm:
        job = farm.submit(JobRequest(text="Hello, world."))
        for job in farm.follow(job.id):
            print(job.progress.fraction)
        for file in farm.deliverables(job.id):
            print(file.name, file.url)
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import ValidationError

from cli.errors import FarmAwayError
from cli.http import RETRYABLE_STATUS, checked_url, http_client
from cli.job_request import JobRequest
from cli.patience import Patience
from cli.problems import error_of, retry_after_s
from cli.replies import (
    Deliverable,
    DeliverableList,
    Job,
    JobPage,
    Reply,
    Voice,
    VoiceList,
)
from cli.sse import parse_events
from shared.errors import CapacityError, FatalError, UsageError

R = TypeVar("R", bound=Reply)
PAGE = 100


class FarmClient:
    """One farm, seen through its API, as the tenant of `key`.

    `locate` is asked for the farm's address again whenever it could not be reached: a farm that
    was started anew may listen elsewhere. It may raise FarmAwayError.
    Errors: UsageError and its children for refusals, FarmAwayError when patience has run out,
    FatalError when something else than a farm answers.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        patience_s: float = 5.0,
        locate: Callable[[], str] | None = None,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = checked_url(url)
        self._patience_s = patience_s
        self._locate = locate
        self._clock = clock
        self._sleep = sleep
        self._http = http_client(self.url, transport)
        if key is not None:
            self._http.headers["Authorization"] = f"Bearer {_header_value(key)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The farm goes on with its jobs."""
        self._http.close()

    def is_ready(self) -> bool:
        """Look once, without patience: does the farm answer, and is all of it there."""
        try:
            return self._http.get(f"{self.url}/readyz", timeout=2.0).is_success
        except httpx.HTTPError:
            return False

    def submit(self, request: JobRequest, *, idempotency_key: str | None = None) -> Job:
        """Hand in a job. With the same key, the same request makes one job however often sent."""
        key = idempotency_key or uuid4().hex
        return self.ask(
            Job,
            "POST",
            "/v1/jobs",
            content=request.to_json(),
            headers={"Idempotency-Key": key, "Content-Type": "application/json"},
        )

    def job(self, job_id: str) -> Job:
        """Return the job as it stands now."""
        return self.ask(Job, "GET", f"/v1/jobs/{_segment(job_id)}")

    def cancel(self, job_id: str) -> Job:
        """Ask for a job's end; what is being spoken this second may still be finished."""
        return self.ask(Job, "POST", f"/v1/jobs/{_segment(job_id)}/cancel")

    def retry(self, job_id: str) -> Job:
        """Have what a partial or failed job lacks rendered. ConflictError: it lacks nothing."""
        return self.ask(Job, "POST", f"/v1/jobs/{_segment(job_id)}/retry")

    def delete(self, job_id: str) -> Job:
        """Have a job's files and text removed now, cancelling it first; its record stays."""
        return self.ask(Job, "DELETE", f"/v1/jobs/{_segment(job_id)}")

    def pause(self, job_id: str) -> Job:
        """Let a job stand still; what is being spoken is finished. ConflictError: too late."""
        return self.ask(Job, "POST", f"/v1/jobs/{_segment(job_id)}/pause")

    def resume(self, job_id: str) -> Job:
        """Let a paused job go on."""
        return self.ask(Job, "POST", f"/v1/jobs/{_segment(job_id)}/resume")

    def jobs(self, *, state: str | None = None, tier: str | None = None) -> Iterator[Job]:
        """All jobs, newest first, page by page."""
        wanted = {"state": state, "tier": tier, "limit": str(PAGE)}
        params = {name: value for name, value in wanted.items() if value is not None}
        while True:
            page = self.ask(JobPage, "GET", "/v1/jobs", params=params)
            yield from page.data
            if not page.next_cursor:
                return
            params["cursor"] = page.next_cursor

    def deliverables(self, job_id: str) -> tuple[Deliverable, ...]:
        """Return the job's files, with URLs fresh for about an hour."""
        path = f"/v1/jobs/{_segment(job_id)}/deliverables"
        return self.ask(DeliverableList, "GET", path).files

    def voices(self) -> tuple[Voice, ...]:
        """Every voice that the farm's engines offer."""
        return self.ask(VoiceList, "GET", "/v1/voices").voices

    def follow(self, job_id: str) -> Generator[Job]:
        """Yield the job again and again as it moves; the view of its end comes last.

        A stream that breaks is opened again; views may then repeat but never go missing at the
        end.
        """
        patience = Patience(self._patience_s, self._clock)
        while True:
            trouble: Exception | None = None
            try:
                for job in self._stream(job_id):
                    patience.succeeded()
                    yield job
                    if job.state.ended:
                        return
            except (httpx.TransportError, FarmAwayError) as error:
                trouble = error
            self._pause(patience, trouble, at_least_s=0.0)

    def _stream(self, job_id: str) -> Iterator[Job]:
        url = f"{self.url}/v1/jobs/{_segment(job_id)}/events"
        with self._http.stream("GET", url, headers={"Accept": "text/event-stream"}) as response:
            if not response.is_success:
                response.read()
                if response.status_code in RETRYABLE_STATUS:
                    raise FarmAwayError(str(error_of(response)))
                raise error_of(response)
            for event in parse_events(response.iter_lines()):
                if event.kind in {"progress", "end"}:
                    yield _parsed(Job, event.data.encode(), self.url)

    def ask(
        self,
        reply: type[R],
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        json: object = None,
        headers: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
    ) -> R:
        """Make one call of the API, with patience, and return its answer."""
        patience = Patience(self._patience_s, self._clock)
        while True:
            trouble: Exception
            wait_s = 0.0
            try:
                response = self._http.request(
                    method,
                    self.url + path,
                    content=content,
                    json=json,
                    headers=headers,
                    params=params,
                )
            except httpx.TransportError as error:
                trouble = error
            else:
                if response.is_success:
                    return _parsed(reply, response.content or b"{}", self.url)
                trouble = error_of(response)
                if response.status_code not in RETRYABLE_STATUS:
                    raise trouble
                wait_s = _retry_after_s(response)
            self._pause(patience, trouble, at_least_s=wait_s)

    def _pause(self, patience: Patience, trouble: Exception | None, *, at_least_s: float) -> None:
        delay_s = patience.failed(at_least_s=at_least_s)
        if delay_s is None:
            why = f" ({trouble})" if trouble is not None and str(trouble) else ""
            if isinstance(trouble, CapacityError):
                raise FarmAwayError(f"the farm at {self.url} takes no more now{why}") from trouble
            raise FarmAwayError(f"no farm answers at {self.url}{why}") from trouble
        self._sleep(delay_s)
        if self._locate is not None:
            with suppress(FarmAwayError):  # the next try fails too, and patience counts it
                self.url = checked_url(self._locate())


def _parsed(reply: type[R], body: bytes, url: str) -> R:
    try:
        return reply.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "body"
        raise FatalError(
            f"{url} gave an answer that this client cannot read ({where}: {first['msg']})"
        ) from None


def _header_value(key: str) -> str:
    if not key.isascii() or not key.isprintable() or not key.strip():
        raise UsageError("that is no API key; one looks like vxf_...", code="bad-key")
    return key.strip()


def _segment(job_id: str) -> str:
    """Make a job id one path segment, whatever the user typed."""
    return quote(job_id, safe="") or "-"


def _retry_after_s(response: httpx.Response) -> float:
    """How long to wait at least; never long, since room may come earlier than predicted."""
    return min(retry_after_s(response), 10.0)
