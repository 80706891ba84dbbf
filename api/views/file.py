"""A deliverable as its tenant sees it: what it is, and where to fetch it for a while."""

from datetime import datetime
from typing import Self

from pydantic import Field

from api.views.base import View, duration_s
from shared.ledger.deliverables import Deliverable
from shared.ledger.tables import WHOLE_JOB


class FileView(View):
    """A file of a job. `url` needs no credentials and works until `url_expires_at`."""

    name: str
    kind: str = Field(description="`audio` or `manifest`")
    part: int | None = Field(description="index of its chapter; null: the whole job")
    title: str | None
    format: str
    content_type: str
    bytes: int
    samples: int | None
    sample_rate_hz: int | None
    duration_s: float | None
    sha256: str
    url: str
    url_expires_at: datetime

    @classmethod
    def of(
        cls, file: Deliverable, *, title: str | None, url: str, url_expires_at: datetime
    ) -> Self:
        """The view of a stored deliverable."""
        audio = file.rate_hz > 0
        return cls(
            name=file.name,
            kind=file.kind,
            part=None if file.part == WHOLE_JOB else file.part,
            title=title or None,
            format=file.format,
            content_type=file.content_type,
            bytes=file.size_bytes,
            samples=file.samples if audio else None,
            sample_rate_hz=file.rate_hz if audio else None,
            duration_s=duration_s(file.samples, file.rate_hz),
            sha256=file.sha256,
            url=url,
            url_expires_at=url_expires_at,
        )


class FileList(View):
    """All files of a job that are ready: parts in order, then the manifest."""

    job_id: str
    files: list[FileView]
