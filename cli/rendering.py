"""One render from text to files: submit, follow, download, and tell where the time went."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import FrameType
from uuid import uuid4

from cli.connect import Connection
from cli.errors import FarmAwayError
from cli.fetching import Fetched, audio_s, fetch_all, require_files
from cli.job_request import JobRequest
from cli.outputs import Outputs
from cli.progress import Display, show_job
from cli.replies import Job
from cli.source import Source
from cli.timeline import Timeline
from cli.words import clock_time, size, times_real_time
from shared.errors import UsageError, VoxfarmError


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a render came to. `spans_s` are seconds by stage; `wall_s` is from submit to file."""

    job: Job
    files: tuple[Fetched, ...]
    spans_s: dict[str, float]
    wall_s: float

    @property
    def audio_s(self) -> float:
        """Length of the audio files together."""
        return audio_s(self.files)

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        return {
            "job_id": self.job.id,
            "state": self.job.state.value,
            "characters": self.job.characters,
            "audio_s": round(self.audio_s, 3),
            "wall_s": round(self.wall_s, 3),
            "x_real_time": round(self.audio_s / self.wall_s, 2) if self.wall_s > 0 else None,
            "segments_reused": self.job.reuse.segments,
            "spans_s": {name: round(span_s, 3) for name, span_s in self.spans_s.items()},
            "files": [one.as_json() for one in self.files],
        }

    def lines(self) -> Iterator[str]:
        """Yield what people read."""
        for one in self.files:
            length = "" if one.file.duration_s is None else clock_time(one.file.duration_s)
            yield f"{one.path}  {length}  {size(one.file.bytes)}".replace("    ", "  ")
        yield (
            f"{clock_time(self.audio_s)} of audio in {self.wall_s:.1f} s: "
            f"{times_real_time(self.audio_s, self.wall_s)}"
        )
        yield " · ".join(f"{name} {span_s:.1f} s" for name, span_s in self.spans_s.items())
        if self.job.reuse.segments:
            there, of = self.job.reuse.segments, self.job.reuse.of
            yield f"{there:,} of {of:,} segments were there already; --no-reuse speaks them anew"


def render(
    connection: Connection,
    request: JobRequest,
    source: Source,
    outputs: Outputs,
    display: Display,
    *,
    patience_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> Rendered:
    """Render `source` and bring the files here.

    KeyboardInterrupt on the way asks the farm to cancel the job and is raised again.
    JobFailedError: the job ended without files.
    """
    timeline = Timeline(clock)
    began_s = clock()
    timeline.begin("plan")
    job = _submit(connection, request, source, display)
    display.say(f"job {job.id}, {job.characters:,} characters")
    try:
        with closing(connection.client.follow(job.id)) as views:
            for view in views:
                job = view
                timeline.see(job)
                show_job(display, job, rendering_s=timeline.since_s("render"))
    except KeyboardInterrupt:
        _cancel(connection, lambda: job.id, display)
        raise
    except FarmAwayError as error:
        raise FarmAwayError(f"{error}; see later: voxfarm jobs wait {job.id}") from None
    require_files(job)
    timeline.begin("download")
    try:
        files = fetch_all(connection.client, job, outputs, display, patience_s=patience_s)
    except (KeyboardInterrupt, VoxfarmError):
        display.say(f"the job is done; fetch its files with: voxfarm jobs download {job.id}")
        raise
    timeline.end()
    spans_s = {"start": connection.start_s, **timeline.spans_s()}
    return Rendered(job, files, spans_s, wall_s=clock() - began_s)


def _submit(connection: Connection, request: JobRequest, source: Source, display: Display) -> Job:
    key = uuid4().hex
    try:
        return connection.client.submit(request, idempotency_key=key)
    except UsageError as error:
        raise _with_position(error, source) from None
    except KeyboardInterrupt:
        # The farm may have the job already; asking again under the same key tells its id.
        _cancel(
            connection,
            lambda: connection.client.submit(request, idempotency_key=key).id,
            display,
        )
        raise


def _cancel(connection: Connection, job_id: Callable[[], str], display: Display) -> None:
    display.say("cancelling the job; Ctrl-C again leaves at once")
    try:
        job = connection.client.cancel(job_id())
        display.say(f"job {job.id} is {job.state.value}")
    except KeyboardInterrupt:
        connection.in_haste = True
    except VoxfarmError as error:
        display.say(f"the farm could not be asked: {error}")


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C while the block runs."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _with_position(error: UsageError, source: Source) -> UsageError:
    """Add line and column to a refusal that names a character of the text."""
    offset = error.fields.get("offset")
    if not isinstance(offset, int) or not 0 <= offset <= len(source.text):
        return error
    line, column = source.position(offset)
    fields = {**error.fields, "line": line, "column": column}
    return UsageError(f"{error} (line {line}, column {column})", code=error.code, **fields)
