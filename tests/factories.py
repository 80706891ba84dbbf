"""Valid-by-default makers of what tests need; a test names only what it is about."""

from shared.jobs import AudioFormat, JobSpec, JobState, NewlineMode, OnUnspeakable, Pauses
from shared.ledger.jobs import NewJob
from shared.segments import SegmentKind, SegmentState
from shared.tiers import Tier


def job_spec(**changes: object) -> JobSpec:
    defaults: dict[str, object] = {
        "engine": "tone",
        "engine_version": "1",
        "engine_backend": "numpy",
        "engine_rate_hz": 24_000,
        "engine_max_chars": 400,
        "engine_min_chars": 1,
        "languages": ("en",),
        "voice": "a",
        "language": "en",
        "tier": Tier.STANDARD,
        "format": AudioFormat.FLAC,
        "sample_rate_hz": 24_000,
        "speed": 1.0,
        "seed": 0,
        "pauses": Pauses(),
        "newlines": NewlineMode.PROSE,
        "on_unspeakable": OnUnspeakable.REFUSE,
        "split_chapters": False,
    }
    return JobSpec.model_validate(defaults | changes)


def new_job(text: str = "One. Two. Three.", **changes: object) -> NewJob:
    spec_changes = {k: v for k, v in changes.items() if k in JobSpec.model_fields}
    rest = {k: v for k, v in changes.items() if k not in JobSpec.model_fields}
    defaults: dict[str, object] = {
        "tenant": "default",
        "spec": job_spec(**spec_changes),
        "text": text,
        "chapters": (),
        "title": "",
        "metadata": {},
    }
    return NewJob(**(defaults | rest))  # type: ignore[arg-type]


def waiting_job(job_id: str, **changes: object) -> dict[str, object]:
    """The row of a job that renders and has something to send."""
    row = {
        "id": job_id,
        "tenant": "default",
        "state": JobState.RENDERING,
        "tier": Tier.STANDARD,
        "metadata": {},
        "spec": {},
        "characters": 0,
        "created_at": 0.0,
        "due_at": 0.0,
        "head_due_at": 0.0,
        "turn_s": 0.0,
    }
    return row | changes


def waiting_segment(job_id: str, index: int, **changes: object) -> dict[str, object]:
    """The row of a segment that may be sent at once."""
    row = {
        "job_id": job_id,
        "index": index,
        "part": 0,
        "kind": SegmentKind.SPEECH,
        "start": 0,
        "end": 0,
        "text": "",
        "pause_after_s": 0.0,
        "tier": Tier.STANDARD,
        "chars": 90,
        "due_at": 0.0,
        "not_before": 0.0,
        "state": SegmentState.PENDING,
    }
    return row | changes
