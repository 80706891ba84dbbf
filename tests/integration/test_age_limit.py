"""Jobs past their age: the scheduler's sweep ends them, whatever they were doing, and no others."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection, select, update

from shared.farm import Farm
from shared.jobs import JobState
from shared.ledger import jobs, pausing, retrying, segment_records
from shared.ledger import tables as t
from shared.segments import SegmentState
from shared.steps import StepKind
from tests.contract.ledger import hooks, shelf, story
from worker import scheduler

DAY_S = 86_400.0


@pytest.fixture
def farm(farm: Farm) -> Farm:
    return replace(farm, settings=farm.settings.model_copy(update={"max_job_age_s": 2 * DAY_S}))


def let_days_pass(farm: Farm, days: float, job_id: str) -> None:
    c = t.job.c
    older = update(t.job).where(c.id == job_id)
    farm.database.transact(
        lambda conn: conn.execute(
            older.values(
                created_at=c.created_at - days * DAY_S, retried_at=c.retried_at - days * DAY_S
            )
        )
    )


def record(farm: Farm, job_id: str) -> jobs.JobRecord:
    return farm.database.read(lambda conn: jobs.get(conn, "default", job_id))


def accepted(farm: Farm) -> str:
    return story.submit(farm.database)


def planning(farm: Farm) -> str:
    job_id = story.submit(farm.database)
    described, rows = story.planned_rows(1, 3)
    claimed = story.claim_step(farm.database, job_id, StepKind.PLAN)
    story.begin_plan(farm.database, claimed, described, rows)
    return job_id


def rendering(farm: Farm) -> str:
    job_id = story.planned_job(farm.database)
    messages = story.feed(farm.database, 2)
    story.must_claim(farm.database, messages[0])
    return job_id


def paused(farm: Farm) -> str:
    job_id = story.planned_job(farm.database)
    farm.database.transact(lambda conn: pausing.pause(conn, "default", job_id))
    return job_id


def assembling(farm: Farm) -> str:
    job_id = shelf.rendered_job(farm.database)
    story.claim_any_step(farm.database, job_id)
    return job_id


@pytest.mark.parametrize("stage", [accepted, planning, rendering, paused, assembling])
def test_a_job_past_its_age_fails_wherever_it_stands_and_nothing_of_it_goes_on(
    farm: Farm, stage: Callable[[Farm], str]
) -> None:
    job_id = stage(farm)
    let_days_pass(farm, 1.99, job_id)
    scheduler.sweep(farm)
    assert not record(farm, job_id).state.ended
    let_days_pass(farm, 0.02, job_id)
    scheduler.sweep(farm)
    scheduler.sweep(farm)  # a second scheduler
    ended = record(farm, job_id)
    assert (ended.state, ended.error_code) == (JobState.FAILED, "too-old")
    assert ended.error_message == "the job was not done within 2 days"
    assert (ended.paused, ended.expires_at is not None) == (False, True)

    def still_open(conn: Connection) -> list[str]:
        rows = segment_records.page(conn, job_id, limit=100)
        steps = conn.execute(select(t.step.c.state).where(t.step.c.job_id == job_id)).scalars()
        ends = {"done", "cancelled", "failed"}
        return [s for s in [*(str(row.state) for row in rows), *steps] if s not in ends]

    assert farm.database.read(still_open) == []
    assert story.feed(farm.database) == []


def test_its_webhook_is_told_once(farm: Farm) -> None:
    job_id = hooks.submit(farm.database, webhook=hooks.named())
    let_days_pass(farm, 3, job_id)
    scheduler.sweep(farm)
    scheduler.sweep(farm)
    told = farm.database.read(
        lambda conn: (
            conn.execute(select(t.outbox.c.type).where(t.outbox.c.job_id == job_id)).scalars().all()
        )
    )
    assert told == ["job.failed"]


def test_ended_jobs_stay_as_they_ended(farm: Farm) -> None:
    job_id = shelf.completed_job(farm.database)
    let_days_pass(farm, 9, job_id)
    scheduler.sweep(farm)
    assert record(farm, job_id).state is JobState.COMPLETED


def test_a_retry_starts_its_age_anew_and_it_ends_whole(farm: Farm) -> None:
    job_id = rendering(farm)
    let_days_pass(farm, 3, job_id)
    scheduler.sweep(farm)
    farm.database.transact(lambda conn: retrying.retry(conn, "default", job_id))
    scheduler.sweep(farm)
    assert record(farm, job_id).state is JobState.RENDERING
    assert SegmentState.CANCELLED not in {
        row.state
        for row in farm.database.read(lambda conn: segment_records.page(conn, job_id, limit=100))
    }
    let_days_pass(farm, 2.01, job_id)
    scheduler.sweep(farm)
    assert record(farm, job_id).error_code == "too-old"
    farm.database.transact(lambda conn: retrying.retry(conn, "default", job_id))
    shelf.render_rest(farm.database)
    shelf.finish(farm.database, job_id)
    assert record(farm, job_id).state is JobState.COMPLETED
