"""Trying an ended job again: the same behaviour on SQLite and on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update

from shared.errors import ConflictError
from shared.jobs import JobState
from shared.ledger import deliverables, jobs, plans, retrying, segments, settling, tables
from shared.ledger.database import Database
from shared.ledger.deliverables import Deliverable
from shared.ledger.jobs import JobRecord
from shared.steps import StepKind, StepState
from tests.contract.ledger import story


def retry(database: Database, job_id: str) -> JobRecord:
    return database.transact(lambda conn: retrying.retry(conn, "default", job_id))


def look(database: Database, job_id: str) -> JobRecord:
    return database.read(lambda conn: jobs.get(conn, "default", job_id))


def open_steps(database: Database, job_id: str) -> list[str]:
    c = tables.step.c
    waiting = select(c.kind).where(c.job_id == job_id, c.state == StepState.PENDING)
    return database.read(lambda conn: list(conn.execute(waiting).scalars()))


def give_up(database: Database, claimed: segments.Claim) -> None:
    database.transact(
        lambda conn: settling.quarantine(
            conn, claimed.job_id, claimed.index, claimed.token, "it crashed alone"
        )
    )


def file_of(part: int, kind: str = "audio") -> Deliverable:
    return Deliverable(part, kind, f"{part}.flac", "flac", "audio/flac", f"k{part}", 1, "0", 1, 1)


def assemble_waiting(database: Database, job_id: str) -> None:
    """Assemble every part that waits for it, and close the job when it is whole."""
    while look(database, job_id).state not in {JobState.PARTIAL, JobState.COMPLETED}:
        claimed = story.claim_any_step(database, job_id)
        if claimed is None:
            return
        if claimed.part == tables.WHOLE_JOB:
            manifest = file_of(tables.WHOLE_JOB, "manifest")
            database.transact(
                lambda conn, c=claimed, m=manifest: deliverables.commit_job(conn, c, m)
            )  # type: ignore[misc]
        else:
            file = file_of(claimed.part)
            database.transact(
                lambda conn, c=claimed, f=file: deliverables.commit_part(conn, c, f)  # type: ignore[misc]
            )


def partial_job(database: Database) -> str:
    """Two parts of three segments, all spoken but the second part's first."""
    job_id = story.planned_job(database, parts=2, per_part=3)
    for message in story.feed(database):
        claimed = story.must_claim(database, message)
        if message.index == 3:
            give_up(database, claimed)
        else:
            story.commit(database, claimed)
    assemble_waiting(database, job_id)
    assert look(database, job_id).state is JobState.PARTIAL
    return job_id


def test_a_partial_job_gets_only_its_gap_back(database: Database) -> None:
    job_id = partial_job(database)
    retried = retry(database, job_id)
    assert retried.state is JobState.RENDERING
    assert open_steps(database, job_id) == []
    assert retried.progress.segments_quarantined == 0
    assert story.count(database, job_id) == story.Counted(remaining=1, open_rows=1)
    files = database.read(lambda conn: deliverables.of_job(conn, job_id))
    assert [(f.kind, f.part) for f in files] == [("audio", 0)]
    [message] = story.feed(database)
    assert message.index == 3
    assert story.commit(database, story.must_claim(database, message)).step_id is not None
    assemble_waiting(database, job_id)
    done = look(database, job_id)
    assert done.state is JobState.COMPLETED
    assert done.progress.parts_done == 2
    events = database.read(
        lambda conn: (
            conn.execute(select(tables.outbox.c.type).order_by(tables.outbox.c.id)).scalars().all()
        )
    )
    assert events == ["job.partial", "job.completed"]
    with pytest.raises(ConflictError):
        retry(database, job_id)


def test_a_retry_asked_for_many_times_begins_one_round(database: Database) -> None:
    job_id = partial_job(database)
    with ThreadPoolExecutor(8) as pool:
        states = [r.state for r in pool.map(lambda _: retry(database, job_id), range(8))]
    assert set(states) == {JobState.RENDERING}
    assert story.count(database, job_id) == story.Counted(remaining=1, open_rows=1)
    rounds = database.read(lambda conn: conn.execute(select(tables.job.c.round)).scalar_one())
    assert rounds == 1


def test_a_job_that_failed_while_it_rendered_goes_on_where_it_was(database: Database) -> None:
    job_id = story.planned_job(database, parts=2, per_part=2)
    first, second, *_ = story.feed(database)
    story.commit(database, story.must_claim(database, first))
    late = story.must_claim(database, second)
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED, code="too-old"))
    assert not story.commit(database, late).won
    retried = retry(database, job_id)
    assert (retried.state, retried.error_code) == (JobState.RENDERING, None)
    assert story.count(database, job_id) == story.Counted(remaining=3, open_rows=3)
    assert story.commit(database, late).won  # its audio is what is wanted, and nobody else has it
    story.speak(database)
    assemble_waiting(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED


def test_a_job_that_failed_in_assembly_is_assembled_again_and_not_rendered(
    database: Database,
) -> None:
    job_id = story.planned_job(database, parts=2, per_part=1)
    story.speak(database)
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED, code="assemble-failed"))
    retried = retry(database, job_id)
    assert retried.state is JobState.ASSEMBLING
    assert open_steps(database, job_id) == [StepKind.ASSEMBLE] * 2
    assemble_waiting(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED


def test_a_job_that_failed_before_its_plan_was_whole_is_planned_on(database: Database) -> None:
    job_id = story.submit(database)
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED, code="too-old"))
    retried = retry(database, job_id)
    assert retried.state is JobState.ACCEPTED
    assert open_steps(database, job_id) == [StepKind.PLAN]
    story.plan(database, job_id)
    story.speak(database)
    assemble_waiting(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED


def test_a_part_that_was_spoken_before_the_plan_was_whole_is_assembled_in_the_next_round(
    database: Database,
) -> None:
    """given a plan half written, whose first part is all spoken / when the job fails there"""
    job_id = story.submit(database)
    planning = story.claim_step(database, job_id, StepKind.PLAN)
    described, rows = story.planned_rows(2, 2)
    story.begin_plan(database, planning, described, rows[:2])
    story.speak(database)
    assert open_steps(database, job_id) == [StepKind.ASSEMBLE]
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED, code="plan-failed"))
    assert retry(database, job_id).state is JobState.RENDERING
    assert sorted(open_steps(database, job_id)) == [StepKind.ASSEMBLE, StepKind.PLAN]
    again = story.claim_step(database, job_id, StepKind.PLAN)
    story.begin_plan(database, again, described, rows[2:])
    assert database.transact(lambda conn: plans.finish_plan(conn, again)) == []
    story.speak(database)
    assemble_waiting(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED


def test_a_job_spoken_and_assembled_before_its_plan_ended_comes_to_its_end(
    database: Database,
) -> None:
    """given a plan of which only its own end is missing / when the job fails while it closes"""
    job_id = story.submit(database)
    planning = story.claim_step(database, job_id, StepKind.PLAN)
    described, rows = story.planned_rows(1, 1)
    story.begin_plan(database, planning, described, rows)
    [message] = story.feed(database)
    story.commit(database, story.must_claim(database, message))
    part = story.claim_step(database, job_id, StepKind.ASSEMBLE)
    assert database.transact(lambda conn: deliverables.commit_part(conn, part, file_of(0))).won
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED, code="assemble-failed"))
    assert retry(database, job_id).state is JobState.ASSEMBLING
    assert sorted(open_steps(database, job_id)) == [StepKind.ASSEMBLE, StepKind.PLAN]
    again = story.claim_step(database, job_id, StepKind.PLAN)
    assert database.transact(lambda conn: plans.finish_plan(conn, again)) == []
    assemble_waiting(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.CANCELLED])
def test_what_lacks_nothing_or_was_cancelled_is_not_tried_again(
    database: Database, state: JobState
) -> None:
    job_id = story.planned_job(database)
    database.transact(lambda conn: jobs.end(conn, job_id, state))
    with pytest.raises(ConflictError, match="nothing to try again"):
        retry(database, job_id)


def test_a_retry_starts_the_age_and_moves_the_deadline(database: Database) -> None:
    job_id = partial_job(database)
    due_at = look(database, job_id).due_at
    long_ago = {"created_at": tables.job.c.created_at - 1e6, "ended_at": tables.job.c.ended_at - 50}
    database.transact(lambda conn: conn.execute(update(tables.job).values(long_ago)))
    assert retry(database, job_id).due_at == pytest.approx(due_at + 50, abs=20)
    assert database.read(lambda conn: jobs.overdue_ids(conn, 1_000.0)) == []


def test_a_job_that_wants_no_gap_fails_with_its_first(database: Database) -> None:
    job_id = story.submit(database, on_error="fail")
    story.plan(database, job_id)
    messages = story.feed(database)
    give_up(database, story.must_claim(database, messages[1]))
    failed = look(database, job_id)
    assert (failed.state, failed.error_code) == (JobState.FAILED, "segment-failed")
    assert "it crashed alone" in (failed.error_message or "")
    assert story.count(database, job_id).open_rows == 0
    assert retry(database, job_id).state is JobState.RENDERING
    assert len(story.feed(database)) == 3
