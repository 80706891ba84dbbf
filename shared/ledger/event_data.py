"""What an event tells of its job, read in the transaction in which it happened. No spoken text."""

from typing import Any

from sqlalchemy import Connection, func, select

from shared.jobs import JobState
from shared.ledger import tables as t


def job_data(conn: Connection, job_id: str) -> dict[str, Any]:
    """The job as a JSON object: as in the API's answers, but without settings and estimates."""
    job = conn.execute(select(t.job).where(t.job.c.id == job_id)).one()
    c = t.part.c
    sums = conn.execute(
        select(
            func.coalesce(func.sum(c.remaining), 0).label("remaining"),
            func.coalesce(func.sum(c.quarantined), 0).label("quarantined"),
            func.coalesce(func.sum(c.chars_total), 0).label("chars_total"),
            func.coalesce(func.sum(c.chars_done), 0).label("chars_done"),
            func.coalesce(func.sum(c.audio_s), 0.0).label("audio_s"),
        ).where(c.job_id == job_id)
    ).one()
    settled = job.segments_total - sums.remaining if job.parts_total else 0
    fraction = sums.chars_done / sums.chars_total if sums.chars_total else 0.0
    whole = job.state in {JobState.COMPLETED, JobState.PARTIAL}
    return {
        "id": job.id,
        "object": "job",
        "state": job.state,
        "tier": job.tier,
        "title": job.title or None,
        "metadata": dict(job.metadata),
        "characters": job.characters,
        "created_at": job.created_at,
        "ended_at": job.ended_at,
        "progress": {
            "segments_total": job.segments_total,
            "segments_done": settled - sums.quarantined,
            "segments_quarantined": sums.quarantined,
            "segments_skipped": job.segments_skipped,
            "fraction": 1.0 if whole else round(fraction, 4),
            "audio_s": round(sums.audio_s, 3),
            "parts_total": job.parts_total,
            "parts_done": job.parts_total - job.parts_remaining,
        },
        "error": None
        if job.error_code is None
        else {"code": job.error_code, "message": job.error_message or ""},
    }
