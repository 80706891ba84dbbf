"""What a storm must not have done to a job, read from ledger, witness and the delivered files.

Each finding is one sentence for people. No finding: every sentence was committed once and is heard
once, in samples that equal those of an undisturbed farm. What a book repeats of an earlier one may
have been reused instead.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import soundfile
from sqlalchemy import Connection, select

from shared.ledger import tables as t
from shared.segments import SegmentKind, SegmentState
from tests.chaos.storm import witness
from tests.chaos.storm.book import Book
from tests.chaos.storm.ground import Ground
from worker.engines.tone import RATE_HZ
from worker.engines.tone_code import decode


@dataclass(frozen=True, slots=True)
class Submitted:
    """A book and its job."""

    book: Book
    job_id: str

    @property
    def expected(self) -> str:
        """The state that it must end in."""
        return "partial" if self.book.poison else "completed"


def judge(ground: Ground, submitted: Submitted) -> list[str]:
    """Everything that is wrong with one job. It must have been asked for until it ended."""
    name = f"job {submitted.job_id}"
    job = ground.farm.get(f"/v1/jobs/{submitted.job_id}")
    if job["state"] != submitted.expected:
        return [f"{name} ended as {job['state']}, not {submitted.expected}: {job.get('error')}"]
    found = [
        *ground.database.read(lambda conn: list(_ledger_faults(conn, submitted))),
        *_heard_faults(ground, submitted),
        *_gap_faults(ground, submitted),
    ]
    return [f"{name}: {fault}" for fault in found]


def _ledger_faults(conn: Connection, submitted: Submitted) -> Iterator[str]:
    job_id, c, p = submitted.job_id, t.segment.c, t.part.c
    commits, reuses = witness.commits(conn, job_id), witness.reuses(conn, job_id)
    if reuses and not submitted.book.repeats:
        yield f"{len(reuses)} segments were reused of a text that is new"
    for number, times in witness.changes(conn, job_id).items():
        yield f"segment {number} was changed {times} times after its commit"
    rows = conn.execute(
        select(c.index.label("number"), c.part, c.state, c.samples).where(
            c.job_id == job_id, c.kind == SegmentKind.SPEECH
        )
    ).all()
    if len(rows) != submitted.book.sentences:
        yield f"{len(rows)} rows for {submitted.book.sentences} sentences"
    audio_s = dict.fromkeys((row.part for row in rows), 0.0)
    for row in rows:
        expected = 0 if row.state == SegmentState.QUARANTINED else 1
        committed, reused = commits.get(row.number, 0), reuses.get(row.number, 0)
        if committed + reused != expected:
            yield (
                f"segment {row.number} is {row.state}: committed {committed} times,"
                f" reused {reused} times"
            )
        audio_s[row.part] += row.samples / RATE_HZ
    parts = conn.execute(select(t.part).where(p.job_id == job_id)).all()
    for part in parts:
        counted = (part.remaining, part.chars_done - part.chars_total)
        if counted != (0, 0) or abs(part.audio_s - audio_s.get(part.index, 0.0)) > 1e-6:
            yield f"part counters are wrong: {part}"


def _heard_faults(ground: Ground, submitted: Submitted) -> Iterator[str]:
    book = submitted.book
    files = ground.farm.get(f"/v1/jobs/{submitted.job_id}/deliverables")["files"]
    urls = [f["url"] for f in files if f["kind"] == "audio"]  # type: ignore[attr-defined,index]
    if len(urls) != len(book.chapters):
        yield f"{len(urls)} files for {len(book.chapters)} chapters"
        return
    for chapter, (url, expected) in enumerate(zip(urls, book.spoken(), strict=True)):
        pcm, rate_hz = soundfile.read(io.BytesIO(ground.farm.fetch(url)), dtype="int16")
        heard = [mark.hash_hex for mark in decode(pcm.astype(np.float32) / 32_768, rate_hz)]
        if heard != expected:
            missing, more = len(set(expected) - set(heard)), len(heard) - len(set(heard))
            yield f"chapter {chapter}: {missing} sentences missing, {more} doubled, or disordered"
        elif not np.array_equal(pcm, book.pcm(chapter)):
            yield f"chapter {chapter} differs from an undisturbed run"


def _gap_faults(ground: Ground, submitted: Submitted) -> Iterator[str]:
    """The manifest names the poisoned sentence, it alone, and in its place."""
    poison = submitted.book.poison
    gaps = ground.farm.manifest(submitted.job_id)["gaps"]
    text = ground.database.read(lambda conn: _text_of(conn, submitted.job_id))
    assert isinstance(gaps, list)
    named = [text[gap["start"] : gap["end"]].strip() for gap in gaps]
    if named != ([] if poison is None else [poison]):
        yield f"{len(gaps)} gaps are named, of {int(poison is not None)}: {gaps}"


def _text_of(conn: Connection, job_id: str) -> str:
    return str(
        conn.execute(select(t.job_text.c.text).where(t.job_text.c.job_id == job_id)).scalar_one()
    )
