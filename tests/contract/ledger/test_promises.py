"""Backlogs, kept promises, places in the queue and remaining times, on both databases."""

import time
from collections.abc import Mapping

import pytest
from sqlalchemy import Connection, update

from shared import outlook
from shared.jobs import JobState
from shared.ledger import backlog, company, jobs, marks, nodes, pausing, tables
from shared.ledger.backlog import Kept, TierLoad
from shared.ledger.database import Database
from shared.ledger.progress import POSITION_CAP, Progress
from shared.settings import Settings
from shared.tiers import Tier
from tests.contract.ledger import story
from tests.unit.api.engines import engine_info


def loads(database: Database) -> Mapping[Tier, TierLoad]:
    return database.read(backlog.read)[1]


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
        assert load == TierLoad(backlog.Backlog(), Kept(), Kept(), ())
        assert load.last_day.share is None


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
    load = loads(database)[Tier.STANDARD]
    assert load.last_hour == Kept(jobs=3, met=1)
    assert load.last_day == Kept(jobs=4, met=1)
    database.transact(lambda conn: pausing.pause(conn, "default", overdue))
    assert loads(database)[Tier.STANDARD].last_hour == Kept(jobs=2, met=1)


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
