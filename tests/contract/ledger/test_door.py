"""Keys, backlogs and rates in the ledger: the same on SQLite and on PostgreSQL."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from sqlalchemy import Connection, insert, text

from api.capacity import Demand, check_quota
from api.load import look
from shared import outlook
from shared.api_keys import new_key
from shared.errors import CapacityError, NotFoundError
from shared.jobs import JobState
from shared.ledger import backlog, demand, jobs, keys, nodes
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.migrate import alembic_config, is_current, migrate
from shared.settings import Settings
from shared.tenants import NO_QUOTA, Quota, TenantBacklog
from shared.tiers import Tier
from tests.contract.ledger import story
from tests.factories import new_job
from tests.unit.api.engines import engine_info


def test_a_key_counts_until_it_is_revoked_and_is_remembered_after(database: Database) -> None:
    assert not database.read(keys.ever_created)
    key, quota = new_key(), Quota(audio_s=90.5, jobs=4)
    database.transact(
        lambda conn: keys.create(
            conn,
            key.id,
            key.sha256,
            tenant="news",
            name="the desk",
            tiers=(Tier.BULK, Tier.RUSH),
            quota=quota,
        )
    )
    [record] = database.read(keys.listed)
    assert (record.id, record.sha256, record.tenant) == (key.id, key.sha256, "news")
    assert (record.name, record.quota) == ("the desk", quota)
    assert record.tiers == {Tier.RUSH, Tier.BULK}
    assert abs(record.created_at - time.time()) < 60
    assert database.transact(lambda conn: keys.revoke(conn, key.id))
    assert not database.transact(lambda conn: keys.revoke(conn, key.id))
    assert database.read(keys.listed) == []
    [remembered] = database.read(lambda conn: keys.listed(conn, revoked=True))
    assert remembered.revoked_at is not None
    assert database.read(keys.ever_created)
    with pytest.raises(NotFoundError):
        database.transact(lambda conn: keys.revoke(conn, new_key().id))


def test_jobs_from_before_the_door_count_too(database: Database) -> None:
    def back(conn: Connection) -> None:
        config = alembic_config()
        config.attributes["connection"] = conn
        command.downgrade(config, "0001")

    story.submit(database, text="x" * 150)
    job_id = story.submit(database, text="x" * 99)
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.CANCELLED))
    database.transact(back)
    migrate(database)
    backlog = database.read(lambda conn: demand.tenant_backlog(conn, "default"))
    assert backlog == TenantBacklog(10.0, 1)
    assert is_current(database)


def test_no_part_of_the_ledger_holds_the_key_itself(database: Database) -> None:
    key = new_key()
    database.transact(
        lambda conn: keys.create(conn, key.id, key.sha256, tenant="a", quota=NO_QUOTA)
    )
    [row] = database.read(lambda conn: conn.execute(t.api_key.select()).all())
    assert not any(key.text[-43:] in str(value) for value in row)


def test_a_backlog_is_what_is_accepted_and_not_yet_spoken(database: Database) -> None:
    def backlog(tenant: str = "default") -> TenantBacklog:
        return database.read(lambda conn: demand.tenant_backlog(conn, tenant))

    assert backlog() == TenantBacklog(0.0, 0)
    job_id = story.submit(database, expected_audio_s=30.0)
    story.submit(database, tenant="other", expected_audio_s=7.0)
    assert (backlog(), backlog("other")) == (TenantBacklog(30.0, 1), TenantBacklog(7.0, 1))
    story.plan(database, job_id, parts=2, per_part=2)
    [first, *_] = story.feed(database)
    story.commit(database, story.must_claim(database, first))
    assert backlog() == TenantBacklog(pytest.approx(22.5), 1)
    live = {job.tier: job for job in database.read(demand.live_jobs) if job.audio_s == 30.0}
    assert live[Tier.STANDARD].done == pytest.approx(0.25)
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.CANCELLED))
    assert backlog() == TenantBacklog(0.0, 0)
    assert [job.audio_s for job in database.read(demand.live_jobs)] == [7.0]


def test_the_door_goes_by_the_rate_that_tiers_show(database: Database) -> None:
    def rate() -> float | None:
        return database.read(lambda conn: look(conn, Settings())).rate

    story.planned_job(database, per_part=60)
    story.speak(database, limit=40)
    assert rate() is None  # nobody is there who could go on like that
    database.transact(lambda conn: nodes.publish(conn, "n1", engine_info(slots=1)))
    one, four = rate(), None
    assert one is not None
    database.transact(lambda conn: nodes.publish(conn, "n2", engine_info(slots=3)))
    four = rate()
    assert four == pytest.approx(4 * one)  # one at a time was too little for either of them
    shown = database.read(lambda conn: outlook.read(conn, Settings())).rate
    assert shown is not None
    assert (shown.audio_s_per_s, shown.is_bound) == (pytest.approx(four), True)


@pytest.mark.parametrize("quota", [Quota(jobs=7), Quota(audio_s=72.0)])
def test_fifty_at_once_never_take_a_tenant_past_its_quota(database: Database, quota: Quota) -> None:
    def submit(_: int) -> bool:
        def write(conn: Connection) -> None:
            demand.lock_tenant(conn, "default")
            backlog = demand.tenant_backlog(conn, "default")
            check_quota(Demand(Tier.BULK, 10.0, 150), backlog, quota, None)
            jobs.accept(conn, new_job(expected_audio_s=10.0), story.TARGET)

        try:
            database.transact(write)
        except CapacityError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(submit, range(50))) == 7
    backlog = database.read(lambda conn: demand.tenant_backlog(conn, "default"))
    assert backlog == TenantBacklog(pytest.approx(70.0), 7)


def test_the_door_looks_at_few_of_very_many_rows(database: Database) -> None:
    story.planned_job(database, per_part=1)

    def fill(conn: Connection) -> None:
        [row] = conn.execute(t.segment.select()).mappings().all()
        rows = [
            dict(row)
            | {"index": n, "state": "done", "samples": 24_000, "rate_hz": 24_000, "done_at": n}
            for n in range(1, 20_001)
        ]
        conn.execute(insert(t.segment), rows)
        conn.execute(text("ANALYZE"))

    database.transact(fill)
    statement = (
        "SELECT claimed_at FROM segment WHERE segment.state = 'done' AND segment.samples > 0 "
        "AND segment.claimed_at IS NOT NULL AND tier = 'standard' AND done_at >= 19990 "
        "ORDER BY done_at DESC LIMIT 2000"
    )
    explain = "EXPLAIN QUERY PLAN " if database.dialect == "sqlite" else "EXPLAIN "
    plan = database.read(lambda conn: str(conn.execute(text(explain + statement)).all()))
    assert "ix_segment_spoken" in plan
    began = time.perf_counter()
    assert database.read(lambda conn: backlog.spoken(conn, Tier.STANDARD)) == ()
    assert len(database.read(demand.live_jobs)) == 1
    assert time.perf_counter() - began < 0.25
