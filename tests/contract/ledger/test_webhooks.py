"""Webhooks and the outbox: the same behaviour on SQLite and on PostgreSQL."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import func, select, update

from shared.errors import ConflictError, NotFoundError, UsageError
from shared.jobs import JobState
from shared.ledger import delivery_log, jobs, outbox, tables, webhooks
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.webhooks import DeliveryState, EventType, Standing
from tests.contract.ledger import hooks, story

ENDS = ["completed", "partial", "failed", "cancelled"]


@pytest.mark.parametrize("state", ENDS)
def test_a_job_that_ends_is_told_once_to_the_webhook_that_it_named(
    database: Database, state: str
) -> None:
    job_id = hooks.submit(database, webhook=hooks.named(), title="T", metadata={"a": "b"})
    assert hooks.end(database, job_id, state)
    assert not hooks.end(database, job_id, "failed")
    claimed = hooks.must_claim(database)
    assert claimed.event_type == f"job.{state}"
    assert claimed.url == hooks.URL
    assert (claimed.data["id"], claimed.data["state"]) == (job_id, state)
    assert (claimed.data["title"], claimed.data["metadata"]) == ("T", {"a": "b"})
    assert hooks.hand_out(database) == []


def test_a_job_ends_once_however_many_ask_and_is_told_once(database: Database) -> None:
    job_id = hooks.submit(database, webhook=hooks.named())
    hooks.register(database, "https://other.example/")
    with ThreadPoolExecutor(8) as pool:
        ended = pool.map(lambda n: hooks.end(database, job_id, ENDS[n % 4]), range(16))
        assert sum(ended) == 1
    assert len(hooks.hand_out(database)) == 2


def test_one_url_is_told_once_although_it_is_registered_and_named(database: Database) -> None:
    hook = hooks.register(database)
    job_id = hooks.submit(database, webhook=hooks.named())
    hooks.end(database, job_id)
    assert [one.job_id for one in hooks.log(database, hook.id)] == [job_id]


def test_who_is_told_depends_on_tenant_and_event(database: Database) -> None:
    mine = hooks.register(database, events=[EventType.FAILED])
    hooks.register(database, tenant="other")
    quiet = hooks.named("https://quiet.example/", [EventType.CANCELLED])
    job_id = hooks.submit(database, webhook=quiet)
    hooks.end(database, job_id, "failed")
    assert [one.event_type for one in hooks.log(database, mine.id)] == ["job.failed"]
    assert len(hooks.hand_out(database)) == 1
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert record.webhook_events == ("job.cancelled",)
    assert record.webhook_id is not None
    assert hooks.log(database, record.webhook_id) == []


def test_fifty_jobs_at_once_make_one_webhook_of_one_url(database: Database) -> None:
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: hooks.submit(database, webhook=hooks.named()), range(50)))
    assert len(database.read(lambda conn: webhooks.page(conn, "default", limit=9))) == 1


def test_a_job_that_is_retried_and_ends_again_is_told_again(database: Database) -> None:
    job_id = hooks.submit(database, webhook=hooks.named())
    for _ in range(3):
        assert hooks.end(database, job_id, "partial")
        database.transact(
            lambda conn: conn.execute(
                update(tables.job).values(state=JobState.RENDERING, ended_at=None)
            )
        )
    [hook] = database.read(lambda conn: webhooks.page(conn, "default", limit=9))
    events = [one.event_id for one in hooks.log(database, hook.id)]
    assert len(set(events)) == 3


def test_the_body_is_fixed_by_whoever_sends_first(database: Database) -> None:
    job_id = hooks.submit(database, webhook=hooks.named())
    hooks.end(database, job_id)
    event_id = hooks.must_claim(database).event_id

    def freeze(n: int) -> str:
        return database.transact(lambda conn: outbox.freeze_body(conn, event_id, f"body {n}"))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(freeze, range(16)))) == 1


def test_a_disabled_webhook_is_refused_at_submit_and_what_it_misses_can_be_replayed(
    database: Database,
) -> None:
    hook = hooks.register(database)
    waits, comes = hooks.submit(database), hooks.submit(database)
    hooks.end(database, waits)
    database.transact(lambda conn: webhooks.disable(conn, hook.id, "asked for"))
    hooks.end(database, comes)
    assert hooks.hand_out(database) == []
    assert [one.state for one in hooks.log(database, hook.id)] == [DeliveryState.FAILED] * 2
    with pytest.raises(ConflictError) as refused:
        hooks.submit(database, webhook=hooks.named())
    assert refused.value.fields["webhook_id"] == hook.id
    with pytest.raises(ConflictError):
        database.transact(lambda conn: delivery_log.replay_failed(conn, hook.id, 0.0))
    database.transact(lambda conn: webhooks.enable(conn, hook.id))
    assert hooks.hand_out(database) == []
    assert database.transact(lambda conn: delivery_log.replay_failed(conn, hook.id, 0.0)) == 2
    assert hooks.must_claim(database).data["id"] == waits


def test_a_removed_webhook_takes_its_deliveries_along_and_jobs_still_end(
    database: Database,
) -> None:
    job_id = hooks.submit(database, webhook=hooks.named())
    other = hooks.submit(database, webhook=hooks.named())
    hooks.end(database, other)
    [message] = hooks.hand_out(database)
    database.transact(lambda conn: webhooks.remove(conn, "default", message.webhook_id))
    assert hooks.claim(database, message) is None
    assert hooks.end(database, job_id)
    with pytest.raises(NotFoundError):
        hooks.look(database, message.webhook_id)


def test_jobs_end_while_their_webhooks_come_and_go(database: Database) -> None:
    ids = [hooks.submit(database) for _ in range(30)]

    def churn(n: int) -> None:
        hook = hooks.register(database, f"https://h{n % 3}.example/")
        with suppress(NotFoundError):  # another thread was quicker
            database.transact(lambda conn: webhooks.remove(conn, "default", hook.id))

    with ThreadPoolExecutor(8) as pool:
        churning = [pool.submit(churn, n) for n in range(30)]
        assert all(pool.map(lambda job_id: hooks.end(database, job_id), ids))
        for one in churning:
            one.result()


def test_another_tenants_webhook_does_not_exist(database: Database) -> None:
    hook = hooks.register(database, tenant="other")
    forbidden: list[Callable[..., object]] = [
        lambda conn: webhooks.get(conn, "default", hook.id),
        lambda conn: webhooks.remove(conn, "default", hook.id),
        lambda conn: webhooks.rotate(conn, "default", hook.id, hooks.SECRETS.mark, overlap_s=1),
    ]
    for call in forbidden:
        with pytest.raises(NotFoundError):
            database.transact(call)
    assert database.read(lambda conn: webhooks.page(conn, "default", limit=9)) == []


def test_a_secret_changes_with_an_overlap_that_a_second_asking_does_not_cut_short(
    database: Database,
) -> None:
    hook = hooks.register(database)

    def rotate(overlap_s: float) -> webhooks.WebhookRecord:
        return database.transact(
            lambda conn: webhooks.rotate(
                conn, "default", hook.id, hooks.SECRETS.mark, overlap_s=overlap_s
            )
        )

    changed = rotate(60.0)
    assert changed.secret.former == hook.secret
    assert changed.mark == hooks.SECRETS.mark(changed.secret) != hook.mark
    assert changed.former_until == pytest.approx(database.read(read_clock) + 60, abs=30)
    with pytest.raises(ConflictError) as refused:
        rotate(60.0)
    assert refused.value.code == "rotation-under-way"
    leaked = rotate(0.0)
    assert (leaked.generation, leaked.former_until) == (3, None)


def test_only_so_many_webhooks_are_told_of_every_job(database: Database) -> None:
    for n in range(webhooks.MOST_FOR_EVERY_JOB):
        hooks.register(database, f"https://h{n}.example/")
    hooks.register(database, "https://h0.example/", [EventType.FAILED])  # it is one of them
    with pytest.raises(UsageError) as refused:
        hooks.register(database, "https://more.example/")
    assert refused.value.code == "too-many-webhooks"


def test_progress_is_told_while_a_job_renders_and_overtaken_by_later_news(
    database: Database,
) -> None:
    events = [EventType.PROGRESS, EventType.CANCELLED]
    hook = hooks.register(database, events=events)
    job_id = hooks.submit(database)
    story.plan(database, job_id)

    def tick() -> int:
        due = database.read(outbox.progress_due)
        return sum(
            database.transact(
                lambda conn, one=one: outbox.record_progress(conn, one, every_s=0.0)  # type: ignore[misc]
            )
            for one in due
        )

    assert tick() == 1
    assert tick() == 1
    first, second = hooks.log(database, hook.id)
    assert (first.state, second.state) == (DeliveryState.DROPPED, DeliveryState.PENDING)
    hooks.end(database, job_id, "cancelled")
    assert tick() == 0
    states = [one.state for one in hooks.log(database, hook.id)]
    assert states == [DeliveryState.DROPPED, DeliveryState.DROPPED, DeliveryState.PENDING]
    body = database.read(
        lambda conn: conn.execute(
            select(tables.outbox.c.data).where(tables.outbox.c.id == first.event_id)
        ).scalar_one()
    )
    assert json.loads(body)["progress"]["segments_total"] == 3


def test_two_schedulers_make_one_progress_event(database: Database) -> None:
    hooks.register(database, events=[EventType.PROGRESS])
    story.plan(database, hooks.submit(database))
    [due] = database.read(outbox.progress_due)

    def record(_: int) -> bool:
        return database.transact(lambda conn: outbox.record_progress(conn, due, every_s=60.0))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(record, range(8))) == 1


def test_jobs_that_tell_nobody_of_progress_are_not_looked_at(database: Database) -> None:
    hooks.register(database)
    story.plan(database, hooks.submit(database))
    assert database.read(outbox.progress_due) == []


def test_a_test_event_goes_to_one_webhook_whatever_it_is_told_otherwise(
    database: Database,
) -> None:
    hook = hooks.register(database, events=[EventType.FAILED])
    hooks.register(database, "https://other.example/")
    delivery_id = database.transact(lambda conn: outbox.record_test(conn, "default", hook.id))
    claimed = hooks.must_claim(database)
    assert (claimed.id, claimed.event_type) == (delivery_id, EventType.TEST)
    assert claimed.data == {"webhook_id": hook.id}


def test_old_events_are_forgotten_but_not_what_is_under_way(database: Database) -> None:
    hook = hooks.register(database)
    done, waits = hooks.submit(database), hooks.submit(database)
    hooks.end(database, done)
    hooks.settle(database, hooks.must_claim(database))
    hooks.end(database, waits)
    assert database.transact(lambda conn: outbox.forget_old(conn, 3_600.0)) == 0
    assert database.transact(lambda conn: outbox.forget_old(conn, -3_600.0)) == 1
    [left] = hooks.log(database, hook.id)
    assert (left.job_id, left.state) == (waits, DeliveryState.PENDING)
    count = select(func.count()).select_from(tables.delivery_attempt)
    assert database.read(lambda conn: conn.execute(count).scalar_one()) == 0
    assert hooks.look(database, hook.id).standing is Standing.GOOD
