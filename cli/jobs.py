"""`voxfarm jobs`: look at the farm's jobs, wait, pause, cancel, retry, fetch files, delete."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from cli import options
from cli.client import FarmClient
from cli.connect import connected
from cli.exits import told
from cli.farm_settings import load_settings
from cli.fetching import fetch_all, require_files, require_whole
from cli.file_format import keep_promise
from cli.outputs import Outputs
from cli.progress import display, show_job
from cli.replies import Deliverable, FileKind, Job
from cli.timeline import Timeline
from cli.words import clock_time, columns, job_state, size
from shared.jobs import JobState
from shared.tiers import Tier

PATIENCE_S = 120.0
SHORT_PATIENCE_S = 5.0
STOPPED = frozenset({JobState.FAILED, JobState.CANCELLED})

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id; see: voxfarm jobs list.")]

jobs_app = typer.Typer(
    no_args_is_help=True, help="Look at jobs, wait, pause, cancel, retry, download, delete."
)


@jobs_app.command("list")
def list_command(
    *,
    state: Annotated[JobState | None, typer.Option("--state", help="Only these.")] = None,
    tier: Annotated[Tier | None, typer.Option("--tier", help="Only these.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 50,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """List jobs, newest first.

    Fifty of them, unless --limit says otherwise.

    **Examples**

        voxfarm jobs list
        voxfarm jobs list --state rendering --tier bulk --json
    """
    with told(as_json=as_json), _client(url, key, data, SHORT_PATIENCE_S) as client:
        wanted_state = state.value if state else None
        wanted_tier = tier.value if tier else None
        jobs = list(islice(client.jobs(state=wanted_state, tier=wanted_tier), limit))
        if as_json:
            _print_json([job.model_dump(mode="json") for job in jobs])
        elif jobs:
            for line in columns(list(_rows(jobs))):
                typer.echo(line)
        else:
            typer.echo("no jobs")


@jobs_app.command("show")
def show_command(
    *,
    job_id: JobId,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """Show one job and its files.

    Its state and progress, and its files once they are there.

    **Examples**

        voxfarm jobs show JOB
        voxfarm jobs show JOB --json --url http://farm:8080
    """
    with told(as_json=as_json), _client(url, key, data, SHORT_PATIENCE_S) as client:
        job = client.job(job_id)
        has_files = job.state.ended and job.state is not JobState.EXPIRED
        files = client.deliverables(job.id) if has_files else ()
        if as_json:
            shown = [file.model_dump(mode="json") for file in files]
            _print_json({**job.model_dump(mode="json"), "files": shown})
            return
        for name, value in _facts(job, files):
            typer.echo(f"{name:<12}{value}")
        for file in files:
            length = "" if file.duration_s is None else f"  {clock_time(file.duration_s)}"
            typer.echo(f"{'file':<12}{file.name}{length}  {size(file.bytes)}")


@jobs_app.command("wait")
def wait_command(
    *,
    job_id: JobId,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
    patience: options.Patience = PATIENCE_S,
) -> None:
    """Wait until a job has ended; the exit code says how. Ctrl-C leaves the job alone.

    **Examples**

        voxfarm jobs wait JOB && voxfarm jobs download JOB
    """
    with told(as_json=as_json):
        with _client(url, key, data, patience) as client, display(quiet=quiet) as screen:
            timeline = Timeline(time.monotonic)
            job = client.job(job_id)
            with closing(client.follow(job_id)) as views:
                for view in views:
                    job = view
                    timeline.see(job)
                    show_job(screen, job, rendering_s=timeline.since_s("render"))
        if as_json:
            _print_json(job.model_dump(mode="json"))
        else:
            typer.echo(f"job {job.id} is {job.state.value}")
        require_files(job)
        require_whole(job)


def _add_verb(name: str, ask: Callable[[FarmClient, str], Job], help_: str) -> None:
    """Add a command that asks the farm for one thing and tells how the job stands then."""

    @jobs_app.command(name, help=f"{help_}\n\n**Examples**\n\n    voxfarm jobs {name} JOB")
    def command(
        *,
        job_id: JobId,
        as_json: options.AsJson = False,
        url: options.Url = None,
        key: options.Key = None,
        data: options.Data = None,
    ) -> None:
        with told(as_json=as_json), _client(url, key, data, SHORT_PATIENCE_S) as client:
            _tell(ask(client, job_id), as_json=as_json)


for _name, _ask, _help in (
    ("pause", FarmClient.pause, "Let a job stand still; its share of the farm goes to others."),
    ("resume", FarmClient.resume, "Let a paused job go on; its due time moves by the pause."),
    ("cancel", FarmClient.cancel, "Cancel a job. Files that were finished can be downloaded."),
    (
        "retry",
        FarmClient.retry,
        "Take a partial or failed job up again. Only what is missing is rendered.",
    ),
    (
        "delete",
        FarmClient.delete,
        "Remove a job's files and text now; its record stays. A live job is cancelled first.",
    ),
):
    _add_verb(_name, _ask, _help)


@jobs_app.command("download")
def download_command(
    *,
    job_id: JobId,
    out: options.Out = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
    patience: options.Patience = PATIENCE_S,
) -> None:
    """Fetch the files of an ended job; a broken download goes on where it stopped.

    Of a job that failed or was cancelled, those that were finished before.

    **Examples**

        voxfarm jobs download JOB
        voxfarm jobs download JOB --out novel/ --force
    """
    with told(as_json=as_json):
        with _client(url, key, data, patience) as client, display(quiet=quiet) as screen:
            job = client.job(job_id)
            if not (job.state in STOPPED and client.deliverables(job.id)):
                require_files(job)
            many = sum(f.kind == FileKind.AUDIO for f in client.deliverables(job.id)) > 1
            if not many:
                keep_promise(out, job.format, instead=f"name the file .{job.format}")
            outputs = Outputs(out, stem=job.title or job.id, many=many, force=force)
            files = fetch_all(client, job, outputs, screen, patience_s=patience)
        if as_json:
            _print_json({"job_id": job.id, "files": [one.as_json() for one in files]})
        else:
            for one in files:
                typer.echo(f"{one.path}  {size(one.file.bytes)}")


@contextmanager
def _client(
    url: str | None, key: str | None, data: Path | None, patience_s: float
) -> Iterator[FarmClient]:
    folder = load_settings(data_dir=data).data_dir
    with connected(url=url, data_dir=folder, key=key, patience_s=patience_s) as connection:
        yield connection.client


def _rows(jobs: list[Job]) -> Iterator[tuple[str, ...]]:
    yield "JOB", "STATE", "DONE", "TIER", "CHARACTERS", "CREATED", "TITLE"
    for job in jobs:
        yield (
            job.id,
            job_state(job.state.value, paused=job.paused),
            f"{job.progress.fraction:.0%}",
            job.tier,
            f"{job.characters:,}",
            f"{job.created_at.astimezone():%Y-%m-%d %H:%M}",
            job.title or "",
        )


def _facts(job: Job, files: Sequence[Deliverable]) -> Iterator[tuple[str, str]]:
    at = job.progress
    audio = [file.duration_s or 0.0 for file in files if file.kind == FileKind.AUDIO]
    yield "job", job.id
    yield "title", job.title or "-"
    yield "state", job_state(job.state.value, paused=job.paused)
    yield "voice", f"{job.voice} of {job.engine}, {job.language}, speed {job.speed:g}"
    yield "output", f"{job.format}, {job.sample_rate_hz:,} Hz"
    yield "tier", job.tier
    yield "characters", f"{job.characters:,}"
    yield "segments", f"{at.segments_done:,} of {at.segments_total:,}"
    if at.segments_quarantined:
        yield "given up", f"{at.segments_quarantined:,} segments"
    yield "parts", f"{at.parts_done} of {at.parts_total}"
    if job.reuse.segments:
        yield "reused", f"{job.reuse.segments:,} segments, {job.reuse.parts} parts"
    # Progress counts sentences as they are spoken, before seams are trimmed and pauses added.
    yield "audio", clock_time(sum(audio) if audio else at.audio_s)
    if at.queue_position:
        yield "in queue", f"behind {at.queue_position:,} jobs of its tier"
    if at.eta_s is not None:
        yield "to go", clock_time(at.eta_s)
    for name, moment in (
        ("created", job.created_at),
        ("started", job.started_at),
        ("due", job.due_at),
        ("ended", job.ended_at),
        ("expires", job.expires_at),
    ):
        if moment is not None:
            yield name, f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"
    if job.error is not None:
        yield "error", f"{job.error.message} ({job.error.code})"


def _tell(job: Job, *, as_json: bool) -> None:
    if as_json:
        _print_json(job.model_dump(mode="json"))
    else:
        typer.echo(f"job {job.id} is {job_state(job.state.value, paused=job.paused)}")


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
