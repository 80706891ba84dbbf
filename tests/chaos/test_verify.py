"""`voxfarm verify` on jobs of a real farm: whole ones, and ones that somebody tampered with."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Table,
    and_,
    delete,
    select,
    update,
)

from shared.ledger import tables as t
from shared.ledger.database import Database, open_database
from shared.storage import S3Store
from tests.chaos.farm import ChaosFarm, opened
from worker.verifying.verdict import verify

Tamper = Callable[[Connection, str], None]
pytestmark = pytest.mark.xdist_group("chaos 2")
CHAPTERS = [
    {"title": "One", "text": "First it rains. Then it pours. Then it stops."},
    {"title": "Two", "text": "The sun comes out. *** Nobody is surprised."},
]


def command(farm: ChaosFarm, job_id: str) -> tuple[int, str]:
    argv = ["verify", job_id, "--data", str(farm.data_dir), "--quiet", "--json"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cli", *argv], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout or done.stderr


@pytest.mark.parametrize("audio_format", ["flac", "mp3", "wav"])
def test_a_whole_job_is_found_whole(farm: ChaosFarm, audio_format: str) -> None:
    job_id = farm.submit(chapters=CHAPTERS, format=audio_format)
    assert farm.end_of(job_id)["state"] == "completed"
    code, told = command(farm, job_id)
    verdict = json.loads(told)
    assert (code, verdict["wrong"], verdict["ok"]) == (0, [], True)
    assert verdict["stored_segments"] == 5
    assert verdict["files"] == 3


def test_jobs_that_ended_otherwise_are_found_as_they_are(farm: ChaosFarm) -> None:
    chapters = [{"title": "", "text": "It rains. Poison [[fail]] here. ***"}, CHAPTERS[1]]
    partial, cancelled, deleted = (farm.submit(chapters=chapters) for _ in range(3))
    farm.post(f"/v1/jobs/{cancelled}/cancel")
    assert farm.end_of(partial)["state"] == "partial"
    farm.delete(deleted)
    with opened(farm) as (database, store):
        found = [verify(database, store, job_id) for job_id in (partial, cancelled, deleted)]
    assert [verdict.wrong for verdict in found] == [[], [], []]
    assert [verdict.state for verdict in found] == ["partial", "cancelled", "expired"]


def test_an_unknown_job_is_said_to_be_unknown(farm: ChaosFarm) -> None:
    code, told = command(farm, "01AAAAAAAAAAAAAAAAAAAAAAAA")
    assert code != 0
    assert "job-not-found" in told


def stretch_a_range(conn: Connection, job_id: str) -> None:
    last = (t.segment.c.job_id == job_id) & (t.segment.c.index == 2)
    conn.execute(update(t.segment).where(last).values(start=t.segment.c.start - 3))


def swap_two_renderings(conn: Connection, job_id: str) -> None:
    c = t.segment.c
    rows = conn.execute(
        select(c.index, c.object_key, c.offset_bytes, c.size_bytes).where(
            c.job_id == job_id, c.index.in_((0, 1))
        )
    ).all()
    for row, other in zip(rows, reversed(rows), strict=True):
        conn.execute(
            update(t.segment)
            .where(c.job_id == job_id, c.index == row.index)
            .values(
                object_key=other.object_key,
                offset_bytes=other.offset_bytes,
                size_bytes=other.size_bytes,
            )
        )


def exchange_two_files(conn: Connection, job_id: str) -> None:
    c = t.deliverable.c
    files = conn.execute(
        select(c.part, c.object_key).where(c.job_id == job_id, c.kind == "audio").order_by(c.part)
    ).all()
    for file, other in zip(files, reversed(files), strict=True):
        conn.execute(
            update(t.deliverable)
            .where(c.job_id == job_id, c.part == file.part, c.kind == "audio")
            .values(object_key=other.object_key)
        )


def move_a_mark(conn: Connection, job_id: str) -> None:
    where = (t.deliverable.c.job_id == job_id) & (t.deliverable.c.part == 0)
    timeline = conn.execute(select(t.deliverable.c.timeline).where(where)).scalar_one()
    timeline[1][1] += 10
    conn.execute(update(t.deliverable).where(where).values(timeline=timeline))


def respeed(conn: Connection, job_id: str) -> None:
    spec = conn.execute(select(t.job.c.spec).where(t.job.c.id == job_id)).scalar_one()
    conn.execute(update(t.job).where(t.job.c.id == job_id).values(spec={**spec, "speed": 1.5}))


def removed(table: Table, **which: object) -> Tamper:
    """Rows of a job that are gone: all, or those with these values."""
    return lambda conn, job_id: _expect(
        conn.execute(delete(table).where(_of(table, job_id, which)))
    )


def changed(table: Table, which: Mapping[str, object], **values: object) -> Tamper:
    """Rows of a job that say something else."""
    return lambda conn, job_id: _expect(
        conn.execute(update(table).where(_of(table, job_id, which)).values(**values))
    )


def _of(table: Table, job_id: str, which: Mapping[str, object]) -> ColumnElement[bool]:
    mine = table.c.id if table is t.job else table.c.job_id
    return and_(mine == job_id, *(table.c[name] == value for name, value in which.items()))


def _expect(result: CursorResult[Any]) -> None:
    assert result.rowcount, "nothing was tampered with"


def drop_all_rows(conn: Connection, job_id: str) -> None:
    for table in (t.segment, t.part, t.deliverable, t.job_text):
        conn.execute(delete(table).where(table.c.job_id == job_id))


def forget_the_objects_of_files(conn: Connection, job_id: str) -> None:
    keys = conn.execute(
        select(t.deliverable.c.object_key).where(t.deliverable.c.job_id == job_id)
    ).scalars()
    conn.execute(delete(t.stored_object).where(t.stored_object.c.key.in_(list(keys))))


FIRST, SECOND = {"index": 0}, {"index": 1}
FILE, MANIFEST = {"part": 0, "kind": "audio"}, {"kind": "manifest"}
REMOVED: Mapping[str, tuple[Tamper, str]] = {
    "all rows": (drop_all_rows, "the segments end at character 0"),
    "all segments": (removed(t.segment), "the segments end at character 0"),
    "first segment": (removed(t.segment, **FIRST), "segment 0 is missing"),
    "a segment": (removed(t.segment, **SECOND), "segment 1 is missing"),
    "the last segments": (removed(t.segment, part=1), "the segments end at character"),
    "all parts": (removed(t.part), "the parts end at character 0"),
    "a part": (removed(t.part, **FIRST), "part 0 is missing"),
    "the last part": (removed(t.part, **SECOND), "there is a file of part 1"),
    "all files": (removed(t.deliverable), "part 0 has no file"),
    "a file": (removed(t.deliverable, part=1), "part 1 has no file"),
    "the manifest": (removed(t.deliverable, **MANIFEST), "there is no manifest"),
    "the text": (removed(t.job_text), "the text is gone"),
    "references of files": (forget_the_objects_of_files, "the ledger does not know the object"),
}
CHANGED: Mapping[str, tuple[Tamper, str]] = {
    "the job's length": (changed(t.job, {}, characters=3), "the text has"),
    "its segments' number": (changed(t.job, {}, segments_total=4), "counts 4 segments"),
    "its parts' number": (changed(t.job, {}, parts_total=3), "counts 3 parts"),
    "its skips' number": (changed(t.job, {}, segments_skipped=1), "counts 1 skips"),
    "its parts left": (changed(t.job, {}, parts_remaining=1), "counts 1 parts as done"),
    "its title": (changed(t.job, {}, title="Else"), "the job's title is"),
    "its metadata": (changed(t.job, {}, metadata={"a": "b"}), "the job's metadata is"),
    "its state": (changed(t.job, {}, state="partial"), "is partial and has no gap"),
    "its settings": (respeed, "names other settings"),
    "a longer text": (changed(t.job_text, {}, text="Longer. " * 40), "the text has 320 characters"),
    "a part's start": (changed(t.part, SECOND, start=3), "part 1 starts at character 3"),
    "a part's end": (changed(t.part, SECOND, end=3), "the parts end at character 3"),
    "a part's number": (changed(t.part, SECOND, segments_total=9), "part 1 counts 9 segments"),
    "a part's gaps": (changed(t.part, SECOND, quarantined=1), "part 1 counts 1 gaps"),
    "a part's rest": (changed(t.part, SECOND, remaining=1), "the job counts 4 segments as done"),
    "a segment's part": (changed(t.segment, FIRST, part=1), "lies outside of part 1"),
    "a segment's strange part": (changed(t.segment, FIRST, part=7), "part 7, which is not there"),
    "its kind": (changed(t.segment, FIRST, kind="silence"), "counts 5 segments and has 4"),
    "its state ": (changed(t.segment, FIRST, state="pending"), "segment 0 is pending"),
    "its giving up": (changed(t.segment, FIRST, state="quarantined"), "segment 0 was given up"),
    "its range": (stretch_a_range, "is there twice"),
    "its pause": (changed(t.segment, FIRST, pause_after_s=9.0), "pause_after_s is"),
    "its take": (changed(t.segment, FIRST, take=1), "take is 0, not 1"),
    "its audio's hash": (changed(t.segment, FIRST, sha256="0" * 64), "does not match its hash"),
    "its audio's length": (changed(t.segment, FIRST, samples=5), "the wrong length or rate"),
    "its audio's rate": (changed(t.segment, FIRST, rate_hz=8_000), "the wrong length or rate"),
    "its audio's key": (changed(t.segment, SECOND, object_key="t/default/nowhere"), "is missing"),
    "its audio": (changed(t.segment, FIRST, object_key=None), "is done and has no audio"),
    "two renderings": (swap_two_renderings, "does not match its hash"),
    "two files": (exchange_two_files, "is not the file that was committed"),
    "a file's part": (changed(t.deliverable, FILE, part=5), "a file of part 5"),
    "a file's name": (changed(t.deliverable, FILE, name="x.flac"), "names other files"),
    "a file's format": (changed(t.deliverable, FILE, format="wav"), "and the job wanted flac"),
    "a file's size": (changed(t.deliverable, FILE, size_bytes=1), "bytes in the store, not 1"),
    "a file's hash": (changed(t.deliverable, FILE, sha256="0" * 64), "its hash differs"),
    "a file's length": (changed(t.deliverable, FILE, samples=7), "samples at 24000 Hz, not 7"),
    "a file's rate": (changed(t.deliverable, FILE, rate_hz=8_000), "is flac at 8000 Hz"),
    "a file's key": (changed(t.deliverable, FILE, object_key="t/x"), "is not in the store"),
    "a file's marks": (changed(t.deliverable, FILE, timeline=[]), "does not hold segment 0"),
    "one mark": (move_a_mark, "start_sample is"),
    "the manifest's hash": (changed(t.deliverable, MANIFEST, sha256="0" * 64), "its hash differs"),
    "the manifest's key": (changed(t.deliverable, MANIFEST, object_key="t/x"), "not in the store"),
    "references": (changed(t.stored_object, {}, refs=0), "counts 0 references"),
    "an end": (changed(t.stored_object, {}, condemned_at=1.0), "is about to be deleted"),
    "a doom": (changed(t.stored_object, {}, doomed_at=1.0), "is about to be deleted"),
}


TAMPERED = {**{f"without {what}": how for what, how in REMOVED.items()}, **CHANGED}


@pytest.fixture(scope="module")
def whole(farm: ChaosFarm) -> str:
    """A whole job, in two parts of three and two sentences."""
    job_id = farm.submit(chapters=CHAPTERS)
    assert farm.end_of(job_id)["state"] == "completed"
    return job_id


@contextmanager
def copied(farm: ChaosFarm, path: Path) -> Iterator[tuple[Database, S3Store]]:
    """A copy of the farm's ledger to do harm to, and the store."""
    with (
        closing(sqlite3.connect(farm.data_dir / "voxfarm.db")) as there,
        closing(sqlite3.connect(path)) as here,
    ):
        there.backup(here)
    with opened(farm) as (_, store), open_database(f"sqlite:///{path}") as database:
        yield database, store


@pytest.mark.parametrize("what", TAMPERED)
def test_whatever_was_tampered_with_is_named(
    farm: ChaosFarm, whole: str, tmp_path: Path, what: str
) -> None:
    tamper, told = TAMPERED[what]
    with copied(farm, tmp_path / "copy.db") as (database, store):
        assert verify(database, store, whole).wrong == []
        database.transact(lambda conn: tamper(conn, whole))
        wrong = verify(database, store, whole).wrong
    assert any(told in line for line in wrong), wrong


@pytest.mark.parametrize("manifest", [b"", b"[]", b"{}", b"null", b'{"job": {}, "files": [1]}'])
def test_a_manifest_that_is_none_is_named(
    farm: ChaosFarm, whole: str, tmp_path: Path, manifest: bytes
) -> None:
    with copied(farm, tmp_path / "copy.db") as (database, store):
        key = f"t/default/jobs/{whole}/out/none"
        store.put(key, manifest, content_type="application/json")
        harm = changed(t.deliverable, MANIFEST, object_key=key)
        database.transact(lambda conn: harm(conn, whole))
        wrong = verify(database, store, whole).wrong
        store.delete(key)
    assert any("is no JSON" in line or "not the fields of a manifest" in line for line in wrong)


def test_a_cut_file_is_named_and_the_exit_code_says_so(farm: ChaosFarm) -> None:
    job_id = farm.submit(chapters=CHAPTERS)
    assert farm.end_of(job_id)["state"] == "completed"
    with opened(farm) as (database, store):
        key = database.read(
            lambda conn: conn.execute(
                select(t.deliverable.c.object_key).where(
                    t.deliverable.c.job_id == job_id, t.deliverable.c.part == 0
                )
            ).scalar_one()
        )
        store.put(key, store.get(key)[:-100], content_type="audio/flac")
    code, told = command(farm, job_id)
    assert code == 1
    wrong = " ".join(json.loads(told)["wrong"])
    assert "bytes in the store" in wrong
    assert "01-one.flac" in wrong
