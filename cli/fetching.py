"""Fetches all files of an ended job to their places. Knows the client, no command line."""

from dataclasses import dataclass
from pathlib import Path

from cli.client import FarmClient
from cli.download import download
from cli.errors import JobFailedError, JobPartialError
from cli.outputs import Outputs
from cli.progress import Display, show_bytes
from cli.replies import Deliverable, FileKind, Job
from shared.errors import NotFoundError
from shared.jobs import JobState


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that is here now."""

    file: Deliverable
    path: Path

    def as_json(self) -> dict[str, object]:
        """Return what `--json` tells of it."""
        return {"path": str(self.path)} | self.file.model_dump(
            mode="json",
            include={
                "name",
                "kind",
                "part",
                "title",
                "format",
                "bytes",
                "samples",
                "sample_rate_hz",
                "duration_s",
                "sha256",
            },
        )


def fetch_all(
    client: FarmClient, job: Job, outputs: Outputs, display: Display, *, patience_s: float
) -> tuple[Fetched, ...]:
    """Download every deliverable of `job`; files that were fetched before a failure stay."""
    files = client.deliverables(job.id)
    all_bytes = sum(file.bytes for file in files)
    done_bytes = 0
    fetched = list[Fetched]()
    for file, path in outputs.targets(files):
        download(
            file,
            path,
            fresh=lambda name=file.name: _named(client, job.id, name),  # type: ignore[misc]
            on_bytes=lambda have, name=path.name, done=done_bytes: show_bytes(  # type: ignore[misc]
                display, name, done + have, all_bytes
            ),
            patience_s=patience_s,
        )
        done_bytes += file.bytes
        fetched.append(Fetched(file, path))
    return tuple(fetched)


def audio_s(fetched: tuple[Fetched, ...]) -> float:
    """Sum the length of the audio files."""
    return sum(one.file.duration_s or 0.0 for one in fetched if one.file.kind == FileKind.AUDIO)


def require_files(job: Job) -> None:
    """Raise JobFailedError unless the ended job has files to fetch."""
    if job.state in {JobState.COMPLETED, JobState.PARTIAL}:
        return
    why = f": {job.error.message} ({job.error.code})" if job.error else ""
    raise JobFailedError(f"job {job.id} is {job.state.value}{why}")


def require_whole(job: Job) -> None:
    """Raise JobPartialError when the job was delivered with gaps."""
    if job.state is JobState.PARTIAL:
        gaps = job.progress.segments_quarantined
        raise JobPartialError(
            f"job {job.id} was delivered with {gaps} of {job.progress.segments_total} segments "
            "missing; its manifest names them"
        )


def _named(client: FarmClient, job_id: str, name: str) -> Deliverable:
    for file in client.deliverables(job_id):
        if file.name == name:
            return file
    raise NotFoundError(f"job {job_id} has no file {name} any more")
