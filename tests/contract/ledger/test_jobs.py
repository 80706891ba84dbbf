"""Accepting, planning, ending: the same behaviour on SQLite and on PostgreSQL."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, select, update
from sqlalchemy.exc import IntegrityError

from shared.errors import ConflictError, NotFoundError
from shared.jobs import JobState
from shared.ledger import (
    abandoned_steps,
    deliverables,
    jobs,
    nodes,
    plans,
    replays,
    segment_records,
    settling,
    step_turns,
    steps,
    tables,
)
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.ledger.deliverables import Deliverable
from shared.ledger.migrate import is_current, migrate
from shared.scheduling.depth import Fleet
from shared.steps import StepKind
from shared.tiers import Tier
from shared.voices import EngineInfo, VoiceInfo
from tests.contract.ledger import story
from tests.factories import new_job


def test_the_migrations_make_exactly_the_tables_that_the_code_describes(database: Database) -> None:
    def differences(conn: Connection) -> Any:
        context = MigrationContext.configure(conn, opts={"compare_type": False})
        return compare_metadata(context, tables.metadata)

    assert database.read(differences) == []
    assert is_current(database)
    migrate(database)  # a second run changes nothing


def test_a_job_is_accepted_whole_and_read_back(database: Database) -> None:
    job_id = story.submit(database, text="Naïve café — 你好.", title="T", metadata={"a": "b"})
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert (record.state, record.title, record.metadata) == (JobState.ACCEPTED, "T", {"a": "b"})
    assert record.due_at - record.created_at == pytest.approx(story.TARGET.floor_s)
    assert database.read(lambda conn: jobs.read_text(conn, job_id)) == ("Naïve café — 你好.", [])


def test_another_tenant_sees_no_job(database: Database) -> None:
    job_id = story.submit(database)
    with pytest.raises(NotFoundError):
        database.read(lambda conn: jobs.get(conn, "other", job_id))
    assert database.read(lambda conn: jobs.page(conn, "other", limit=10)) == []


def test_an_idempotency_key_gives_the_same_job_or_a_conflict(database: Database) -> None:
    same = new_job(idempotency_key="k", request_sha256="aa")
    other = new_job(idempotency_key="k", request_sha256="bb")
    first = database.transact(lambda conn: jobs.accept(conn, same, story.TARGET))
    second = database.transact(lambda conn: jobs.accept(conn, same, story.TARGET))
    assert (second.job_id, first.replayed, second.replayed) == (first.job_id, False, True)
    with pytest.raises(ConflictError):
        database.transact(lambda conn: jobs.accept(conn, other, story.TARGET))


@pytest.mark.parametrize(("hours", "is_replay"), [(23 + 59 / 60, True), (24 + 1 / 60, False)])
def test_a_key_is_remembered_for_a_day(
    database: Database, hours: float, *, is_replay: bool
) -> None:
    same = new_job(idempotency_key="k", request_sha256="aa")
    first = database.transact(lambda conn: jobs.accept(conn, same, story.TARGET))
    let_hours_pass(database, hours)
    assert database.transact(replays.forget_old) == (0 if is_replay else 1)
    second = database.transact(lambda conn: jobs.accept(conn, same, story.TARGET))
    assert second.replayed is is_replay
    assert (second.job_id == first.job_id) is is_replay


@pytest.mark.parametrize(("hours", "is_free"), [(23 + 59 / 60, False), (24 + 1 / 60, True)])
def test_a_key_is_free_after_a_day_although_nobody_swept(
    database: Database, hours: float, *, is_free: bool
) -> None:
    former = new_job(idempotency_key="k", request_sha256="aa")
    other = new_job(idempotency_key="k", request_sha256="bb")
    first = database.transact(lambda conn: jobs.accept(conn, former, story.TARGET))
    let_hours_pass(database, hours)
    if not is_free:
        with pytest.raises(ConflictError):
            database.transact(lambda conn: jobs.accept(conn, other, story.TARGET))
        return
    second = database.transact(lambda conn: jobs.accept(conn, other, story.TARGET))
    assert (second.replayed, second.job_id == first.job_id) == (False, False)
    again = database.transact(lambda conn: jobs.accept(conn, other, story.TARGET))
    assert (again.replayed, again.job_id) == (True, second.job_id)


def test_only_keys_of_more_than_a_day_ago_are_forgotten(database: Database) -> None:
    for key in ("old", "older"):
        story.submit(database, idempotency_key=key, request_sha256="aa")
    let_hours_pass(database, 24.1)
    young = story.submit(database, idempotency_key="young", request_sha256="aa")
    assert database.transact(replays.forget_old) == 2
    assert database.transact(replays.forget_old) == 0
    found = database.read(lambda conn: replays.find(conn, "default", "young", "aa"))
    assert found == young
    assert len(database.read(lambda conn: jobs.page(conn, "default", limit=9))) == 3


def let_hours_pass(database: Database, hours: float) -> None:
    """Make all keys older by so much."""
    c = tables.idempotency.c
    older = update(tables.idempotency).values(created_at=c.created_at - hours * 3_600)
    database.transact(lambda conn: conn.execute(older))


def test_racing_submits_with_one_key_make_one_job(database: Database) -> None:
    same = new_job(idempotency_key="k", request_sha256="aa")

    def submit(_: int) -> str:
        for _attempt in range(3):
            try:
                return database.transact(lambda conn: jobs.accept(conn, same, story.TARGET)).job_id
            except IntegrityError as error:
                if not replays.is_race(error):
                    raise
        raise AssertionError("a key race is lost at most once")

    with ThreadPoolExecutor(12) as pool:
        ids = set(pool.map(submit, range(24)))
    assert len(ids) == 1
    assert len(database.read(lambda conn: jobs.page(conn, "default", limit=99))) == 1


def test_pages_go_from_new_to_old_without_gap_or_repeat(database: Database) -> None:
    made = []
    for _ in range(5):
        made.append(story.submit(database))
        time.sleep(0.002)
    seen: list[str] = []
    cursor = None
    while batch := database.read(
        lambda conn, c=cursor: jobs.page(conn, "default", limit=2, before_id=c)  # type: ignore[misc]
    ):
        seen += [record.id for record in batch]
        cursor = seen[-1]
    assert seen == made[::-1]


def test_a_plan_step_that_dies_half_way_is_resumed_without_a_double(database: Database) -> None:
    job_id = story.submit(database)
    dead = story.claim_step(database, job_id, StepKind.PLAN, lease_s=0.01)
    described, rows = story.planned_rows(1, 6)
    database.transact(lambda conn: plans.start_planning(conn, job_id))
    opened = {"skipped": 0, "lease_s": 0.01}
    assert database.transact(lambda conn: plans.open_rendering(conn, dead, described, **opened))
    assert database.transact(
        lambda conn: plans.write_chunk(conn, dead, Tier.STANDARD, rows[:2], lease_s=0.01)
    )
    time.sleep(0.05)
    assert len(database.transact(abandoned_steps.take_back_expired)) == 1
    heir = story.claim_step(database, job_id, StepKind.PLAN)
    assert not database.transact(
        lambda conn: plans.write_chunk(conn, dead, Tier.STANDARD, rows[2:4], lease_s=9)
    )
    database.transact(lambda conn: plans.start_planning(conn, job_id))
    assert database.transact(lambda conn: plans.open_rendering(conn, heir, described, **opened))
    done = database.read(lambda conn: plans.written(conn, job_id))
    assert done == 2
    database.transact(
        lambda conn: plans.write_chunk(conn, heir, Tier.STANDARD, rows[done:], lease_s=9)
    )
    assert database.transact(lambda conn: plans.finish_plan(conn, heir)) == []
    listed = database.read(lambda conn: segment_records.page(conn, job_id, limit=99))
    assert [row.index for row in listed] == list(range(6))
    assert database.read(lambda conn: jobs.get(conn, "default", job_id)).progress.parts_total == 1


def _file(part: int, kind: str = "audio") -> Deliverable:
    return Deliverable(part, kind, f"{kind}{part}", "flac", "audio/flac", "k", 1, "00", 5, 24_000)


def test_the_last_part_closes_the_job_and_leaves_one_event(database: Database) -> None:
    job_id = story.planned_job(database, parts=2, per_part=1)
    story.speak(database)
    messages = database.transact(lambda conn: step_turns.dispatch(conn, window=100))
    claims = [
        database.transact(
            lambda conn, m=m: steps.claim(conn, m.step_id, m.dispatch_no, lease_s=9)  # type: ignore[misc]
        )
        for m in messages
    ]
    commits = [
        database.transact(lambda conn, c=c: deliverables.commit_part(conn, c, _file(c.part)))  # type: ignore[misc]
        for c in claims
    ]
    assert [c.won for c in commits] == [True, True]
    assert [c.step_id is not None for c in commits] == [False, True]
    late = database.transact(lambda conn: deliverables.commit_part(conn, claims[0], _file(0)))
    assert not late.won
    closing = story.claim_step(database, job_id, StepKind.ASSEMBLE)
    assert closing.part == tables.WHOLE_JOB
    assert database.transact(
        lambda conn: deliverables.commit_job(conn, closing, _file(-1, "manifest"))
    )
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert (record.state, record.progress.parts_done) == (JobState.COMPLETED, 2)
    files = database.read(lambda conn: deliverables.of_job(conn, job_id))
    assert [(f.kind, f.part) for f in files] == [("audio", 0), ("audio", 1), ("manifest", -1)]
    events = database.read(lambda conn: conn.execute(select(tables.outbox.c.type)).scalars().all())
    assert events == ["job.completed"]


def test_a_job_with_a_gap_ends_as_partial(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    claimed = story.must_claim(database, message)
    database.transact(
        lambda conn: settling.quarantine(conn, job_id, claimed.index, claimed.token, "x")
    )
    part = story.claim_step(database, job_id, StepKind.ASSEMBLE)
    database.transact(lambda conn: deliverables.commit_part(conn, part, _file(0)))
    closing = story.claim_step(database, job_id, StepKind.ASSEMBLE)
    database.transact(lambda conn: deliverables.commit_job(conn, closing, _file(-1, "manifest")))
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert record.state is JobState.PARTIAL


def test_a_job_ends_once_however_many_ask(database: Database) -> None:
    job_id = story.planned_job(database)

    def end(n: int) -> bool:
        state = JobState.CANCELLED if n % 2 else JobState.FAILED
        return database.transact(lambda conn: jobs.end(conn, job_id, state))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(end, range(16))) == 1
    events = database.read(lambda conn: conn.execute(select(tables.outbox.c.type)).scalars().all())
    assert len(events) == 1


def test_engines_are_published_and_their_live_nodes_counted(database: Database) -> None:
    info = EngineInfo(
        name="tone",
        version="1",
        backend="numpy",
        licence="Apache-2.0",
        sample_rate_hz=24_000,
        voices=(VoiceInfo(id="a", language="en"),),
        languages=("en",),
        slots=8,
        max_chars=400,
    )
    for node in ("n1", "n2", "n1"):
        database.transact(lambda conn, node=node: nodes.publish(conn, node, info))  # type: ignore[misc]
    [record] = database.read(nodes.engines)
    assert (record.info, record.nodes, record.slots) == (info, 2, 16)
    database.transact(lambda conn: nodes.withdraw(conn, "n1"))
    assert database.read(nodes.fleets) == [Fleet(nodes=1, slots=8, pads=False)]
    padded = info.model_copy(update={"name": "torch", "pads": True})
    for node in ("n3", "n4"):
        database.transact(lambda conn, node=node: nodes.publish(conn, node, padded))  # type: ignore[misc]
    assert Fleet(nodes=2, slots=8, pads=True) in database.read(nodes.fleets)


def test_a_time_survives_being_written_in_an_answer(database: Database) -> None:
    for _ in range(200):
        now = database.read(read_clock)
        written = datetime.fromtimestamp(now, UTC).isoformat()
        assert datetime.fromisoformat(written).timestamp() == now
