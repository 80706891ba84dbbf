"""What is true of a ledger between any two transactions, counted anew from its rows.

Read by plain SQL in one snapshot; knows nothing of the code that keeps the counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import isclose
from typing import Any

from sqlalchemy import Connection, Row, text

from tests.contract.ledger.machine.nodes import spoken
from tests.contract.ledger.machine.step_workers import content_of

Rows = Sequence[Row[Any]]
OPEN = {"pending", "dispatched", "leased"}
ALIVE = {"accepted", "planning", "rendering", "assembling"}
WHOLE_JOB = -1
SUSPICIOUS = 2
END_EVENTS = {
    "completed": "job.completed",
    "partial": "job.partial",
    "failed": "job.failed",
    "cancelled": "job.cancelled",
}


class Ledger:
    """All rows at one moment, by job."""

    def __init__(self, conn: Connection) -> None:
        self.jobs = conn.execute(text("SELECT * FROM job ORDER BY id")).all()
        self.parts = self._by_job(
            conn, 'SELECT p.*, "index" AS number FROM part p ORDER BY job_id, "index"'
        )
        self.segments = self._by_job(
            conn,
            'SELECT s.*, "index" AS number FROM segment s ORDER BY job_id, "index"',
        )
        self.steps = self._by_job(conn, "SELECT * FROM step ORDER BY job_id, id")
        self.files = self._by_job(conn, "SELECT * FROM deliverable ORDER BY job_id, part, kind")
        self.events = self._by_job(
            conn,
            "SELECT o.id, o.job_id, o.type,"
            " (SELECT count(*) FROM delivery d WHERE d.event_id = o.id) AS letters,"
            " (SELECT count(*) FROM webhook w WHERE w.tenant = o.tenant AND w.id < o.id) AS readers"
            " FROM outbox o WHERE o.job_id IS NOT NULL",
        )
        self.ends = self._by_job(
            conn, "SELECT id AS job_id, now AS state FROM moves WHERE what = 'job' AND was <> now"
        )
        self.objects = conn.execute(text("SELECT * FROM stored_object")).all()
        self.renderings = conn.execute(text("SELECT * FROM rendering")).all()
        self.stranded = conn.execute(
            text(
                "SELECT w.id FROM webhook w WHERE w.next_at IS NULL AND w.disabled_at IS NULL"
                " AND EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id"
                "   AND d.state = 'pending' AND d.noticed)"
                " AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id"
                "   AND d.state IN ('dispatched', 'leased'))"
            )
        ).all()

        self.disabled = conn.execute(
            text(
                "SELECT w.id, w.next_at, (SELECT count(*) FROM delivery d WHERE d.webhook_id = w.id"
                " AND (d.state = 'dispatched' OR (d.state = 'pending' AND d.noticed))) AS waiting"
                " FROM webhook w WHERE w.disabled_at IS NOT NULL"
            )
        ).all()

    @staticmethod
    def _by_job(conn: Connection, query: str) -> dict[str, Rows]:
        found = defaultdict[str, list[Row[Any]]](list)
        for row in conn.execute(text(query)):
            found[row.job_id].append(row)
        return found  # type: ignore[return-value]


def faults(conn: Connection) -> Iterator[str]:
    """What is wrong with the ledger now, in words."""
    ledger = Ledger(conn)
    for job in ledger.jobs:
        parts, rows = ledger.parts.get(job.id, ()), ledger.segments.get(job.id, ())
        steps = ledger.steps.get(job.id, ())
        for fault in (
            *_counts(job, parts, rows, steps),
            *_life(job, parts, rows, steps),
            *_work(job, parts, rows, steps),
            *_segments(job, rows),
            *_files(job, parts, rows, ledger.files.get(job.id, ())),
            *_news(ledger.ends.get(job.id, ()), ledger.events.get(job.id, ())),
        ):
            yield f"job {job.id} ({job.state}, round {job.round}): {fault}"
    yield from _objects(ledger)
    yield from (
        f"webhook {row.id} has something to say and no time for it" for row in ledger.stranded
    )
    yield from (
        f"webhook {row.id} is disabled, has {row.waiting} letters waiting, the next {row.next_at}"
        for row in ledger.disabled
        if row.waiting or row.next_at is not None
    )


def _is_planned(steps: Rows) -> bool:
    return any(step.kind == "plan" and step.state == "done" for step in steps)


def _speech(rows: Rows, part: int | None = None) -> list[Row[Any]]:
    return [r for r in rows if r.kind == "speech" and (part is None or r.part == part)]


def _counts(job: Row[Any], parts: Rows, rows: Rows, steps: Rows) -> Iterator[str]:
    """Counters are those of the rows."""
    rendering = 0
    for part in parts:
        mine = _speech(rows, part.number)
        done = [r for r in mine if r.state == "done"]
        gaps = [r for r in mine if r.state == "quarantined"]
        settled = [*done, *gaps]
        for name, kept, counted in (
            ("remaining", part.remaining, part.segments_total - len(settled)),
            ("quarantined", part.quarantined, len(gaps)),
            ("chars_done", part.chars_done, sum(r.chars for r in settled)),
        ):
            if kept != counted:
                yield f"part {part.number} has {name} {kept}, its rows say {counted}"
        audio_s = sum(r.samples / r.rate_hz for r in done)
        if not isclose(part.audio_s, audio_s, abs_tol=1e-6):
            yield f"part {part.number} has {part.audio_s} s of audio, its rows {audio_s}"
        rendering += part.remaining > 0 or (not part.segments_total and not _is_planned(steps))
    for name, kept, counted in (
        ("segments_total", job.segments_total, sum(p.segments_total for p in parts)),
        ("parts_total", job.parts_total, len(parts)),
        ("parts_rendering", job.parts_rendering, rendering),
        ("parts_remaining", job.parts_remaining, sum(not p.assembled for p in parts)),
        (
            "segments_reused",
            job.segments_reused,
            sum(r.state == "done" and r.claimed_at is None for r in _speech(rows)),
        ),
    ):
        if kept != counted:
            yield f"{name} is {kept}, its rows say {counted}"
    waiting = [r.due_at for r in rows if r.state == "pending"]
    head = None if job.paused else min(waiting, default=None)
    if job.state == "rendering" and job.head_due_at != head:
        yield f"its head is due at {job.head_due_at}, its first waiting segment at {head}"


def _life(job: Row[Any], parts: Rows, rows: Rows, steps: Rows) -> Iterator[str]:
    """A job's state is that of its work."""
    alive = job.state in ALIVE
    if alive != (job.ended_at is None):
        yield f"its end is at {job.ended_at}"
    if job.paused and job.state not in {"accepted", "planning", "rendering"}:
        yield "it is paused, and cannot be"
    if job.state in {"accepted", "planning"} and (parts or rows):
        yield "it has a plan before it was planned"
    if job.state in {"rendering", "assembling"} and (job.parts_rendering > 0) != (
        job.state == "rendering"
    ):
        yield f"{job.parts_rendering} parts are to be rendered"
    if job.state in {"completed", "partial"}:
        spoken_ = all(r.state == "done" for r in _speech(rows))
        settled = all(r.state in {"done", "quarantined"} for r in _speech(rows))
        if spoken_ != (job.state == "completed") or not settled:
            yield f"its speech is {[r.state for r in _speech(rows)]}"
    if not alive:
        left = [f"segment {r.number} {r.state}" for r in rows if r.state in OPEN]
        left += [f"step {s.kind} {s.part} {s.state}" for s in steps if s.state in OPEN]
        if left:
            yield f"it has ended, and there are {left}"


def _work(job: Row[Any], parts: Rows, rows: Rows, steps: Rows) -> Iterator[str]:
    """A live job has exactly the steps that take it further."""
    if job.state not in ALIVE:
        return
    planned = _is_planned(steps)
    wanted = Counter[tuple[str, int, int]]()
    if not planned:
        wanted["plan", WHOLE_JOB, job.round] += 1
    for part in parts:
        if not part.remaining and not part.assembled and (part.segments_total or planned):
            wanted["assemble", part.number, job.round] += 1
        unsettled = sum(r.state in OPEN for r in _speech(rows, part.number))
        if unsettled > part.remaining or (planned and unsettled != part.remaining):
            yield f"part {part.number} wants {part.remaining}, and {unsettled} are under way"
    if parts and not job.parts_remaining:
        wanted["assemble", WHOLE_JOB, job.round] += 1
    there = Counter((s.kind, s.part, s.round) for s in steps if s.state in OPEN)
    if there != wanted:
        yield f"its open steps are {dict(there)}, it needs {dict(wanted)}"


def _segments(job: Row[Any], rows: Rows) -> Iterator[str]:
    for r in rows:
        if min(r.attempt, r.crashes, r.abandoned) < 0:
            yield f"segment {r.number} has {r.attempt} attempts, {r.crashes} crashes"
        if max(r.alone_token, r.blamed_token) > r.token or r.crashes > r.token:
            yield f"segment {r.number} is blamed for claims that nobody had"
        if r.state in OPEN and r.abandoned >= SUSPICIOUS and not r.suspect:
            yield f"segment {r.number} was abandoned {r.abandoned} times and is not suspected"
        if r.state == "leased" and r.lease_until is None:
            yield f"segment {r.number} is leased for ever"
        if r.state == "done" and r.kind == "speech":
            if r.sha256 != spoken(r.content_key):
                yield f"segment {r.number} does not sound as its content key says"
            if r.object_key is None and job.state != "expired":
                yield f"segment {r.number} is done and has no audio"


def _files(job: Row[Any], parts: Rows, rows: Rows, files: Rows) -> Iterator[str]:
    """Who has a file has all of it: every sentence of a part once, in its order."""
    if job.state == "expired":
        if files:
            yield "it has expired, and has files"
        return
    made = {file.part: file for file in files}
    if set(made) - {WHOLE_JOB} != {part.number for part in parts if part.assembled}:
        yield f"parts {set(made)} have files"
    if (WHOLE_JOB in made) != (job.state in {"completed", "partial"}):
        yield "its manifest is there too early, or missing"
    for part, file in made.items():
        mine = _speech(rows, None if part == WHOLE_JOB else part)
        heard = [r.sha256 for r in mine if r.state == "done"]
        if file.sha256 != content_of(heard):
            yield f"the file of part {part} is not what was spoken"
    for part in parts:
        if part.assembled and not any(r.part == part.number and r.kind == "silence" for r in rows):
            yield f"part {part.number} was assembled before all of it was written"


def _news(moves: Rows, events: Rows) -> Iterator[str]:
    """One event for each end, and a letter of it to each webhook."""
    ended = Counter(END_EVENTS[move.state] for move in moves if move.state in END_EVENTS)
    told = Counter(event.type for event in events if event.type in END_EVENTS.values())
    if ended != told:
        yield f"it ended as {dict(ended)}, and told {dict(told)}"
    for event in events:
        if event.letters != event.readers:
            yield f"{event.letters} letters of {event.type} for {event.readers} webhooks"


def _objects(ledger: Ledger) -> Iterator[str]:
    """Every object's count is that of the rows that point to it; what is doomed has none."""
    pointing = Counter(
        row.object_key
        for rows in (*ledger.segments.values(), *ledger.files.values())
        for row in rows
        if row.object_key is not None
    )
    counted = {row.key: row.refs for row in ledger.objects if row.refs}
    if dict(pointing) != counted:
        yield f"objects are pointed to by {dict(pointing)}, they count {counted}"
    for row in ledger.objects:
        if (row.refs == 0) != (row.condemned_at is not None):
            yield f"object {row.key} has {row.refs} references, condemned at {row.condemned_at}"
        if row.doomed_at is not None and row.refs:
            yield f"object {row.key} is being deleted, and {row.refs} point to it"
    for row in ledger.renderings:
        if row.sha256 != spoken(row.content_key):
            yield f"what is kept for {row.content_key} is not that"
