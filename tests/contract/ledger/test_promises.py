"""Backlogs, kept promises, places in the queue and remaining times, on both databases."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Connection, Row, text, update

from shared import outlook
from shared.jobs import JobState
from shared.ledger import (
    backlog,
    company,
    jobs,
    kept,
    marks,
    nodes,
    pausing,
    retrying,
    settling,
    tables,
)
from shared.ledger.backlog import TierLoad
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.ledger.kept import DAY_S, HOUR_S, Kept, Record
from shared.ledger.progress import POSITION_CAP, Progress
from shared.settings import Settings
from shared.tiers import Tier
from tests.contract.ledger import story
from tests.unit.api.engines import engine_info


def loads(database: Database) -> Mapping[Tier, TierLoad]:
    return database.read(backlog.read)[1]


def records(database: Database, within_s: float = HOUR_S) -> Mapping[Tier, Record]:
    return database.read(lambda conn: kept.read(conn, read_clock(conn), within_s=within_s))


def job_row(database: Database, job_id: str) -> Row[Any]:
    return database.read(
        lambda conn: conn.execute(tables.job.select().where(tables.job.c.id == job_id)).one()
    )


def progress(database: Database, job_id: str) -> Progress:
    return database.read(lambda conn: jobs.get(conn, "default", job_id)).progress


def speak_all(database: Database) -> None:
    story.speak(database)


def make_older(database: Database, *, by_s: float) -> None:
    """Have all marks been left so much earlier."""

    def move(conn: Connection) -> None:
        conn.execute(update(tables.mark).values(at=tables.mark.c.at - by_s))
        conn.execute(update(tables.part).values(marked_at=tables.part.c.marked_at - by_s))

    database.transact(move)


def set_job(database: Database, job_id: str, **values: object) -> None:
    database.transact(
        lambda conn: conn.execute(
            update(tables.job).where(tables.job.c.id == job_id).values(**values)
        )
    )


def test_an_empty_farm_has_nothing_to_do_and_nothing_to_be_proud_of(database: Database) -> None:
    for load in loads(database).values():
        assert load == TierLoad(backlog.Backlog(), ())
    for record in records(database).values():
        assert record == Record(Kept(), Kept())
        assert record.completion.share is None


def test_a_backlog_counts_what_waits_flies_and_is_not_planned_yet(database: Database) -> None:
    before = time.time()
    story.planned_job(database, per_part=5)
    story.submit(database, text="x" * 100)
    story.submit(database, text="y" * 30, tier=Tier.BULK)
    story.feed(database, limit=2)
    found = loads(database)
    standard = found[Tier.STANDARD].backlog
    assert (standard.segments_waiting, standard.segments_in_flight) == (3, 2)
    assert (standard.jobs_unplanned, standard.chars) == (1, 5 * len("Number 0.") + 100)
    assert standard.oldest_at == pytest.approx(before, abs=5)
    assert (found[Tier.BULK].backlog.jobs_unplanned, found[Tier.BULK].backlog.chars) == (1, 30)
    assert found[Tier.RUSH].backlog.oldest_at is None


def test_paused_jobs_are_nobodys_backlog(database: Database) -> None:
    planned, fresh = story.planned_job(database, per_part=5), story.submit(database)
    story.feed(database, limit=2)
    for job_id in (planned, fresh):
        database.transact(lambda conn, j=job_id: pausing.pause(conn, "default", j))  # type: ignore[misc]
    assert loads(database)[Tier.STANDARD].backlog == backlog.Backlog()


def test_finished_segments_tell_how_long_they_took(database: Database) -> None:
    story.planned_job(database, per_part=4)
    speak_all(database)
    spoken = loads(database)[Tier.STANDARD].spoken
    assert [(one.chars, one.audio_s) for one in spoken] == [(9, 1.0)] * 4
    assert all(one.claimed_at <= one.done_at for one in spoken)


def test_promises_are_kept_broken_or_void(database: Database) -> None:
    """given jobs that ended in time, late, failed, cancelled, and one that should have ended."""
    kept, late, failed, cancelled, overdue = (
        story.planned_job(database, per_part=1) for _ in range(5)
    )
    now = time.time()
    for job_id, values in {
        kept: {"state": JobState.COMPLETED, "ended_at": now, "due_at": now + 9},
        late: {"state": JobState.COMPLETED, "ended_at": now - 7_200, "due_at": now - 7_300},
        failed: {"state": JobState.FAILED, "ended_at": now, "due_at": now + 9},
        cancelled: {"state": JobState.CANCELLED, "ended_at": now, "due_at": now - 9},
        overdue: {"due_at": now - 60},
    }.items():
        set_job(database, job_id, **values)
    assert records(database)[Tier.STANDARD].completion == Kept(jobs=3, met=1)
    assert records(database, DAY_S)[Tier.STANDARD].completion == Kept(jobs=4, met=1)
    database.transact(lambda conn: pausing.pause(conn, "default", overdue))
    assert records(database)[Tier.STANDARD].completion == Kept(jobs=2, met=1)


def first_audio(database: Database, within_s: float = HOUR_S) -> Kept:
    return records(database, within_s)[Tier.STANDARD].first_audio


def test_first_audio_is_a_promise_of_its_own(database: Database) -> None:
    """given first audio in time, late, of long ago, to come and overdue / then all but one count.

    A job whose first audio was late broke that promise, though it may keep the other.
    """
    early, late, old, to_come, overdue = (story.planned_job(database) for _ in range(5))
    assert first_audio(database) == Kept()
    now = time.time()
    for job_id, values in {
        early: {"started_at": now - 50, "first_due_at": now - 40},
        late: {"started_at": now - 50, "first_due_at": now - 60},
        old: {"started_at": now - 7_200, "first_due_at": now - 7_201},
        to_come: {"first_due_at": now + 600},
        overdue: {"first_due_at": now - 60},
    }.items():
        set_job(database, job_id, **values)
    assert first_audio(database) == Kept(jobs=3, met=1)
    assert first_audio(database, DAY_S) == Kept(jobs=4, met=1)
    set_job(database, overdue, state=JobState.FAILED, ended_at=now)
    assert first_audio(database) == Kept(jobs=3, met=1)
    set_job(database, overdue, state=JobState.CANCELLED)
    set_job(database, late, state=JobState.CANCELLED)  # what was broken stays broken
    assert first_audio(database) == Kept(jobs=2, met=1)


def test_the_first_sentence_in_time_keeps_it_once_and_for_all(database: Database) -> None:
    before = time.time()
    job_id = story.planned_job(database)
    story.speak(database, limit=1)
    assert first_audio(database) == Kept(jobs=1, met=1)
    heard_at = job_row(database, job_id).started_at
    story.speak(database)
    row = job_row(database, job_id)
    assert row.started_at == heard_at
    assert row.first_due_at == pytest.approx(before + story.TARGET.first_audio_s, abs=30)
    assert first_audio(database) == Kept(jobs=1, met=1)


def test_what_was_given_up_is_not_to_be_heard(database: Database) -> None:
    job_id = story.planned_job(database)
    first, *others = story.feed(database)
    claimed = story.must_claim(database, first)
    database.transact(
        lambda conn: settling.quarantine(conn, job_id, claimed.index, claimed.token, "mute")
    )
    assert job_row(database, job_id).started_at is None
    story.commit(database, story.must_claim(database, others[0]))
    assert job_row(database, job_id).started_at is not None


def test_a_pause_moves_the_first_audio_that_is_still_to_come(database: Database) -> None:
    silent, heard = (story.planned_job(database) for _ in range(2))
    set_job(database, heard, started_at=time.time())
    before = {job_id: job_row(database, job_id).first_due_at for job_id in (silent, heard)}
    for job_id in (silent, heard):
        database.transact(lambda conn, j=job_id: pausing.pause(conn, "default", j))  # type: ignore[misc]
        paused_at = job_row(database, job_id).paused_at
        set_job(database, job_id, paused_at=paused_at - 500.0)
    set_job(database, silent, first_due_at=before[silent] - 100.0)
    assert first_audio(database) == Kept(jobs=1, met=1)  # the paused one is not overdue
    for job_id in (silent, heard):
        database.transact(lambda conn, j=job_id: pausing.resume(conn, "default", j))  # type: ignore[misc]
    assert job_row(database, silent).first_due_at == pytest.approx(before[silent] + 400, abs=30)
    assert job_row(database, heard).first_due_at == before[heard]


def test_a_retry_of_a_silent_job_gives_it_its_time_again(database: Database) -> None:
    job_id = story.planned_job(database)
    now = time.time()
    before = job_row(database, job_id).first_due_at
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED))
    set_job(database, job_id, ended_at=now - 500.0)
    database.transact(lambda conn: retrying.retry(conn, "default", job_id))
    assert job_row(database, job_id).first_due_at == pytest.approx(before + 500, abs=30)


def test_promises_are_judged_from_their_indexes(database: Database) -> None:
    story.planned_job(database)
    with database.engine.begin() as conn:
        row = conn.execute(tables.job.select()).mappings().one()
        copies = [
            {**row, "id": f"{n:026d}", "started_at": None if n % 9 else n, "first_due_at": n}
            for n in range(5_000)
        ]
        conn.execute(tables.job.insert(), copies)
        conn.execute(text("ANALYZE"))
    explain = "EXPLAIN QUERY PLAN " if database.dialect == "sqlite" else "EXPLAIN "
    for condition, column, index in (
        (tables.IS_HEARD_JOB, "started_at", "ix_job_heard"),
        (tables.IS_UNHEARD_JOB, "first_due_at", "ix_job_unheard"),
    ):
        statement = (
            f"{explain} SELECT count(*) FROM job WHERE {condition.text} "  # noqa: S608
            f"AND tier = 'standard' AND {column} >= 4990"
        )
        plan = database.read(lambda conn, s=statement: str(conn.execute(text(s)).all()))  # type: ignore[misc]
        assert index in plan


def test_the_outlook_knows_a_wait_once_something_was_spoken(database: Database) -> None:
    story.planned_job(database, per_part=40)
    database.transact(lambda conn: nodes.publish(conn, "n1", engine_info()))
    before = database.read(lambda conn: outlook.read(conn, Settings()))
    assert before.rate is None
    assert before.tiers[Tier.RUSH].wait_s == 0.0
    assert before.tiers[Tier.STANDARD].wait_s is None
    for message in story.feed(database, limit=20):
        story.commit(database, story.must_claim(database, message))
        time.sleep(0.005)
    after = database.read(lambda conn: outlook.read(conn, Settings()))
    standard = after.tiers[Tier.STANDARD]
    assert after.rate is not None
    assert standard.audio_per_char_s == pytest.approx((60 + 20) / (60 * 15 + 190))
    assert standard.backlog_audio_s == pytest.approx(200 * standard.audio_per_char_s)
    assert standard.wait_s == pytest.approx(standard.backlog_audio_s / after.rate.audio_s_per_s)


def test_a_job_knows_how_many_are_due_before_it(database: Database) -> None:
    first, second, third = (story.planned_job(database, per_part=1) for _ in range(3))
    elsewhere = story.submit(database, tier=Tier.BULK)
    assert [progress(database, j).queue_position for j in (first, second, third)] == [0, 1, 2]
    assert progress(database, elsewhere).queue_position == 0
    database.transact(lambda conn: pausing.pause(conn, "default", first))
    assert [progress(database, j).queue_position for j in (first, second)] == [None, 0]
    database.transact(lambda conn: pausing.resume(conn, "default", first))
    set_job(database, first, state=JobState.ASSEMBLING)
    assert [progress(database, j).queue_position for j in (first, second, third)] == [None, 0, 1]
    listed = database.read(lambda conn: jobs.page(conn, "default", limit=9))
    places = {record.id: record.progress.queue_position for record in listed}
    assert places == {first: None, second: 0, third: 1, elsewhere: 0}


def test_nobody_counts_a_queue_to_its_end(database: Database) -> None:
    last = story.submit(database)
    with database.engine.begin() as conn:
        row = conn.execute(tables.job.select()).mappings().one()
        copies = [
            {**row, "id": f"{n:026d}", "due_at": row["due_at"] - 1} for n in range(POSITION_CAP + 9)
        ]
        conn.execute(tables.job.insert(), copies)
    assert progress(database, last).queue_position == POSITION_CAP


def test_a_long_job_leaves_marks_and_shows_an_eta(database: Database) -> None:
    """given 40 equal sentences / when 9 follow the first in ten seconds / then 30 take 33."""
    job_id = story.planned_job(database, per_part=40)
    first, *others = story.feed(database, limit=10)
    story.commit(database, story.must_claim(database, first))
    assert progress(database, job_id).eta_s is None
    make_older(database, by_s=10)
    for message in others:
        story.commit(database, story.must_claim(database, message))
    left = database.read(lambda conn: marks.recent(conn, [job_id]))[job_id]
    assert [(mark.chars, mark.segments) for mark in left] == [(9, 1), (18, 2)]
    expected_s = 30 / (9 / 10) + 0.5 + 40 / 500
    assert progress(database, job_id).eta_s == pytest.approx(expected_s, rel=0.1)
    [listed] = database.read(lambda conn: jobs.page(conn, "default", limit=9))
    assert listed.progress.eta_s == pytest.approx(expected_s, rel=0.1)


def test_a_neighbour_that_has_not_begun_is_in_the_eta_and_a_paused_one_is_not(
    database: Database,
) -> None:
    """given a book half way alone / when another tenant's joins it / then it may take twice."""
    job_id = story.planned_job(database, per_part=40)
    first, *others = story.feed(database, limit=20)
    story.commit(database, story.must_claim(database, first))
    make_older(database, by_s=10)
    for message in others:
        story.commit(database, story.must_claim(database, message))
    alone_s = progress(database, job_id).eta_s
    assert alone_s is not None
    joined = story.planned_job(database, tenant="other", per_part=40)
    beside_s = progress(database, job_id).eta_s
    assert beside_s == pytest.approx(2 * alone_s, rel=0.15)
    database.transact(lambda conn: pausing.pause(conn, "other", joined))
    assert progress(database, job_id).eta_s == pytest.approx(alone_s, rel=0.15)


def test_a_neighbour_that_stopped_is_known_to_have_stopped_soon_after_its_last_mark(
    database: Database,
) -> None:
    """given a mark of a minute ago and nothing since / then nothing is counted of that minute."""
    story.planned_job(database, per_part=40)
    story.speak(database, limit=10)
    make_older(database, by_s=60)
    [other] = database.read(lambda conn: company.read(conn, time.time() - 120))
    first, stood, now = other.neighbour.marks
    assert (first.segments, stood.segments, now.segments) == (1, 10, 10)
    assert stood.at == pytest.approx(first.at + marks.MARK_EVERY_S)
    assert now.at == pytest.approx(time.time(), abs=30)


def test_a_job_of_one_sentence_leaves_no_mark(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    speak_all(database)
    assert database.read(lambda conn: marks.recent(conn, [job_id])) == {}


def test_chapters_of_one_sentence_leave_marks_too(database: Database) -> None:
    job_id = story.planned_job(database, parts=6, per_part=1)
    for message in story.feed(database, limit=5):
        story.commit(database, story.must_claim(database, message))
        time.sleep(0.01)
    assert len(database.read(lambda conn: marks.recent(conn, [job_id]))[job_id]) == 4
    assert progress(database, job_id).eta_s is None  # four segments are the least


def test_old_marks_are_forgotten(database: Database) -> None:
    story.planned_job(database)
    speak_all(database)
    make_older(database, by_s=9_999)
    assert database.transact(marks.forget_old) == 1


def test_an_assembling_job_goes_by_what_assembling_took_before(database: Database) -> None:
    past, job_id = (story.planned_job(database, per_part=2) for _ in range(2))
    began = time.time()
    speak_all(database)
    now = time.time()
    set_job(database, past, state=JobState.COMPLETED, rendered_at=now - 700, ended_at=now - 100)
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert record.state is JobState.ASSEMBLING
    gone_s = time.time() - began  # it has been assembled for a part of that
    expected_s = 0.5 + 2 * (600 + 1) / (2 + 600)
    assert expected_s - gone_s <= record.progress.eta_s <= expected_s + 0.01
