"""Pausing, resuming and cancelling: the same behaviour on SQLite and on PostgreSQL."""

import time
from dataclasses import replace

import pytest
from sqlalchemy import update

from shared.errors import ConflictError, NotFoundError
from shared.jobs import JobState
from shared.ledger import feeding, jobs, pausing, segment_records, segments, step_turns, tables
from shared.ledger.database import Database
from shared.ledger.jobs import JobRecord
from shared.ledger.segments import Claim
from shared.segments import SegmentState
from shared.steps import StepKind
from shared.tiers import Tier
from tests.contract.ledger import story


def pause(database: Database, job_id: str) -> JobRecord:
    return database.transact(lambda conn: pausing.pause(conn, "default", job_id))


def resume(database: Database, job_id: str) -> JobRecord:
    return database.transact(lambda conn: pausing.resume(conn, "default", job_id))


def put_back(database: Database, held: Claim) -> bool:
    return database.transact(
        lambda conn: segments.put_back(conn, held.job_id, held.index, held.token)
    )


def in_flight(database: Database) -> int:
    return database.read(lambda conn: feeding.in_flight(conn, Tier.STANDARD))


def test_a_pause_frees_what_nobody_claimed_and_lets_the_claimed_finish(database: Database) -> None:
    job_id = story.planned_job(database, per_part=5)
    messages = story.feed(database)
    held = story.must_claim(database, messages[0])
    assert pause(database, job_id).paused
    assert in_flight(database) == 1
    assert story.feed(database) == []
    assert database.transact(
        lambda conn: segments.renew(conn, job_id, held.index, held.token, lease_s=30)
    )
    assert story.commit(database, held).won
    assert story.claim(database, messages[1]) is None  # its message is stale
    assert story.count(database, job_id) == story.Counted(remaining=4, open_rows=4)


def test_a_resumed_job_goes_on_with_new_dispatches(database: Database) -> None:
    job_id = story.planned_job(database, per_part=3)
    stale = story.feed(database)
    pause(database, job_id)
    assert not resume(database, job_id).paused
    fresh = story.feed(database)
    assert [m.dispatch_no for m in fresh] == [2, 2, 2]
    assert story.claim(database, stale[0]) is None
    assert [story.commit(database, story.must_claim(database, m)).won for m in fresh] == [True] * 3


def test_a_message_that_slipped_through_is_not_claimed_while_the_job_is_paused(
    database: Database,
) -> None:
    """given a feeder half way / when the job is paused meanwhile / then nobody can claim it."""
    story.planned_job(database)
    [message, *_] = story.feed(database)
    database.transact(
        lambda conn: conn.execute(update(tables.job).values(paused=True, paused_at=1.0))
    )
    assert story.claim(database, message) is None


def test_the_promise_moves_by_the_time_that_a_job_stood_still(database: Database) -> None:
    job_id = story.planned_job(database)
    before = database.read(lambda conn: jobs.get(conn, "default", job_id))
    due_before = [m.due_at for m in story.feed(database)]
    began_s = time.monotonic()
    pause(database, job_id)
    time.sleep(0.3)
    after = resume(database, job_id)
    assert 0.29 <= after.due_at - before.due_at <= time.monotonic() - began_s + 0.01
    moved = [m.due_at - due for m, due in zip(story.feed(database), due_before, strict=True)]
    assert moved == pytest.approx([after.due_at - before.due_at] * 3)


def test_pausing_and_resuming_twice_changes_nothing(database: Database) -> None:
    job_id = story.planned_job(database)
    first = pause(database, job_id)
    assert pause(database, job_id).paused_at == first.paused_at
    resumed = resume(database, job_id)
    assert resume(database, job_id).due_at == resumed.due_at


def test_a_job_may_be_paused_before_it_is_planned(database: Database) -> None:
    job_id = story.submit(database)
    assert pause(database, job_id).state is JobState.ACCEPTED
    story.plan(database, job_id)
    assert story.feed(database) == []
    resume(database, job_id)
    assert len(story.feed(database)) == 3


def test_what_is_rendered_or_ended_cannot_be_paused(database: Database) -> None:
    rendered = story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    story.commit(database, story.must_claim(database, message))
    cancelled = story.submit(database)
    database.transact(lambda conn: jobs.cancel(conn, "default", cancelled))
    for job_id in (rendered, cancelled):
        with pytest.raises(ConflictError) as refused:
            pause(database, job_id)
        assert refused.value.code == "not-pausable"
    with pytest.raises(NotFoundError):
        pause(database, "0" * 26)
    with pytest.raises(NotFoundError):
        database.transact(lambda conn: pausing.pause(conn, "other", rendered))


def test_a_cancelled_job_is_not_paused_any_more(database: Database) -> None:
    job_id = story.planned_job(database)
    pause(database, job_id)
    record = database.transact(lambda conn: jobs.cancel(conn, "default", job_id))
    assert (record.state, record.paused) == (JobState.CANCELLED, False)
    rows = database.read(lambda conn: segment_records.page(conn, job_id, limit=9))
    assert {row.state.value for row in rows} == {"cancelled"}


def test_one_look_tells_which_jobs_still_render(database: Database) -> None:
    renders, paused, cancelled = (story.planned_job(database) for _ in range(3))
    pause(database, paused)
    database.transact(lambda conn: jobs.cancel(conn, "default", cancelled))
    asked = [renders, paused, cancelled, "0" * 26]
    assert database.read(lambda conn: jobs.still_rendering(conn, asked)) == {
        renders: False,
        paused: True,
    }


def test_what_no_engine_had_begun_goes_back_unharmed_and_is_sent_when_the_job_goes_on(
    database: Database,
) -> None:
    job_id = story.planned_job(database, per_part=2)
    begun, waiting = (story.must_claim(database, m) for m in story.feed(database))
    pause(database, job_id)
    assert put_back(database, waiting)
    assert story.commit(database, begun).won
    assert in_flight(database) == 0
    assert story.feed(database) == []
    [row] = [
        row
        for row in database.read(lambda conn: segment_records.page(conn, job_id, limit=9))
        if row.index == waiting.index
    ]
    assert (row.state, row.attempt, row.error) == (SegmentState.PENDING, 0, None)
    resume(database, job_id)
    [message] = story.feed(database)
    again = story.must_claim(database, message)
    assert (again.index, again.crashes, again.suspect) == (waiting.index, 0, False)
    assert not story.commit(database, replace(again, token=waiting.token)).won
    assert story.commit(database, again).won
    assert story.count(database, job_id) == story.Counted(remaining=0, open_rows=0)


def test_a_job_that_goes_on_before_its_claims_are_back_loses_none(database: Database) -> None:
    """given claims of a paused job / when it is resumed before they are put back / then all come"""
    job_id = story.planned_job(database, per_part=3)
    first, second, third = (story.must_claim(database, m) for m in story.feed(database))
    pause(database, job_id)
    assert put_back(database, first)
    resume(database, job_id)
    [message] = story.feed(database)
    assert message.index == first.index
    assert put_back(database, second)
    assert not put_back(database, second)
    assert not put_back(database, first)  # another claim may have it by now
    [message] = story.feed(database)
    assert message.index == second.index
    assert story.commit(database, third).won
    assert story.count(database, job_id) == story.Counted(remaining=2, open_rows=2)


def test_a_late_commit_of_what_was_put_back_still_counts_once(database: Database) -> None:
    """given an engine that had begun, unknown to its caller / then no work is done twice."""
    job_id = story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    held = story.must_claim(database, message)
    pause(database, job_id)
    assert put_back(database, held)
    assert story.commit(database, held).won
    assert story.commit(database, held).won
    assert story.count(database, job_id) == story.Counted(remaining=0, open_rows=0)


def test_a_paused_job_whose_last_sentence_comes_in_goes_on_to_its_assembly(
    database: Database,
) -> None:
    job_id = story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    held = story.must_claim(database, message)
    began_s = time.monotonic()
    before = pause(database, job_id)
    time.sleep(0.3)
    assert story.commit(database, held).step_id is not None
    after = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert (after.state, after.paused, after.paused_at) == (JobState.ASSEMBLING, False, None)
    assert 0.29 <= after.due_at - before.due_at <= time.monotonic() - began_s + 0.01
    assert resume(database, job_id).due_at == after.due_at
    with pytest.raises(ConflictError):
        pause(database, job_id)
    [step] = database.transact(lambda conn: step_turns.dispatch(conn, window=100))
    assert step.kind == StepKind.ASSEMBLE


def test_what_a_cancel_took_is_not_put_back(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    held = story.must_claim(database, message)
    pause(database, job_id)
    database.transact(lambda conn: jobs.cancel(conn, "default", job_id))
    assert not put_back(database, held)
    assert story.feed(database) == []
