"""`voxfarm verify` on jobs of a real farm: whole ones, and ones that somebody tampered with."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, delete, select, update

from shared.ledger import tables as t
from tests.chaos.farm import ChaosFarm, opened
from worker.verifying.verdict import verify

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


def test_an_unknown_job_is_said_to_be_unknown(farm: ChaosFarm) -> None:
    code, told = command(farm, "01AAAAAAAAAAAAAAAAAAAAAAAA")
    assert code != 0
    assert "job-not-found" in told


def drop_a_segment(conn: Connection, job_id: str) -> None:
    conn.execute(delete(t.segment).where(t.segment.c.job_id == job_id, t.segment.c.index == 1))


def stretch_a_range(conn: Connection, job_id: str) -> None:
    last = (t.segment.c.job_id == job_id) & (t.segment.c.index == 2)
    conn.execute(update(t.segment).where(last).values(start=t.segment.c.start - 3))


def reopen_a_segment(conn: Connection, job_id: str) -> None:
    row = (t.segment.c.job_id == job_id) & (t.segment.c.index == 0)
    conn.execute(update(t.segment).where(row).values(state="pending"))


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


def lose_an_object(conn: Connection, job_id: str) -> None:
    row = (t.segment.c.job_id == job_id) & (t.segment.c.index == 1)
    conn.execute(update(t.segment).where(row).values(object_key="t/default/nowhere"))


def forget_a_file(conn: Connection, job_id: str) -> None:
    c = t.deliverable.c
    conn.execute(delete(t.deliverable).where(c.job_id == job_id, c.part == 1, c.kind == "audio"))


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


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (drop_a_segment, "segment 1 is missing"),
        (stretch_a_range, "is there twice"),
        (reopen_a_segment, "segment 0 is pending"),
        (swap_two_renderings, "does not match its hash"),
        (lose_an_object, "the stored audio of segment 1 is missing"),
        (forget_a_file, "part 1 has no file"),
        (exchange_two_files, "is not the file that was committed"),
        (move_a_mark, "start_sample is"),
    ],
)
def test_whatever_was_tampered_with_is_named(
    farm: ChaosFarm, tamper: Callable[[Connection, str], None], told: str
) -> None:
    job_id = farm.submit(chapters=CHAPTERS)
    assert farm.end_of(job_id)["state"] == "completed"
    with opened(farm) as (database, store):
        assert verify(database, store, job_id).wrong == []
        database.transact(lambda conn: tamper(conn, job_id))
        wrong = verify(database, store, job_id).wrong
    assert any(told in line for line in wrong), wrong


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
