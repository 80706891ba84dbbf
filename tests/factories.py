"""Valid-by-default makers of what tests need; a test names only what it is about."""

from shared.jobs import AudioFormat, JobSpec, NewlineMode, OnUnspeakable, Pauses
from shared.ledger.jobs import NewJob
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
