"""Who enters the window, through the real ledger: fairness, deadlines, and no job forgotten."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from cli.servers.valkey import ValkeyServer
from shared.broker import Broker, build_celery
from shared.dispatch import Dispatcher
from shared.ledger import feeding, jobs, offers
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.migrate import migrate
from shared.messages import SynthMessage
from shared.settings import Settings
from shared.tiers import Tier
from tests.contract.ledger import story

WINDOW = 16


@pytest.fixture
def dispatcher(tmp_path: Path) -> Iterator[Dispatcher]:
    server = ValkeyServer(tmp_path / "valkey").start()
    settings = Settings(data_dir=tmp_path, redis_url=server.url, window_min=WINDOW)
    database = Database(settings.sqlalchemy_url)
    migrate(database)
    broker = Broker(build_celery(settings), settings.redis_url)
    yield Dispatcher(database, broker, settings)
    broker.close()
    database.close()
    server.stop()


def job_of(dispatcher: Dispatcher, tenant: str, *, segments: int = 1) -> str:
    job_id = story.submit(dispatcher.database, tenant=tenant)
    story.plan(dispatcher.database, job_id, per_part=segments)
    return job_id


def sent(dispatcher: Dispatcher) -> list[SynthMessage]:
    return dispatcher.database.read(lambda conn: feeding.dispatched_before(conn, Tier.STANDARD, -1))


def finish(dispatcher: Dispatcher, messages: list[SynthMessage]) -> None:
    for message in messages:
        story.commit(dispatcher.database, story.must_claim(dispatcher.database, message))


def test_a_flood_of_one_tenant_does_not_keep_another_waiting(dispatcher: Dispatcher) -> None:
    for _ in range(60):
        job_of(dispatcher, "flood")
    dispatcher.fill(Tier.STANDARD)
    small = job_of(dispatcher, "small")
    rounds = 0
    while small not in {m.job_id for m in sent(dispatcher)}:
        finish(dispatcher, sent(dispatcher)[: WINDOW // 2])
        dispatcher.fill(Tier.STANDARD)
        rounds += 1
        assert rounds <= 2


def test_two_books_of_two_tenants_advance_side_by_side(dispatcher: Dispatcher) -> None:
    first = job_of(dispatcher, "a", segments=200)
    second = job_of(dispatcher, "b", segments=200)
    for _ in range(12):
        dispatcher.fill(Tier.STANDARD)
        finish(dispatcher, sent(dispatcher))
    done = {
        job_id: dispatcher.database.read(
            lambda conn, job_id=job_id, tenant=tenant: jobs.get(conn, tenant, job_id)  # type: ignore[misc]
        ).progress.segments_done
        for job_id, tenant in ((first, "a"), (second, "b"))
    }
    assert abs(done[first] - done[second]) <= WINDOW


def test_the_window_stays_bounded_and_every_segment_is_sent_once(dispatcher: Dispatcher) -> None:
    for number in range(30):
        job_of(dispatcher, f"tenant{number % 7}", segments=9)
    seen: list[tuple[str, int]] = []
    while dispatcher.fill(Tier.STANDARD):
        messages = sent(dispatcher)
        assert len(messages) <= WINDOW
        seen += [(m.job_id, m.index) for m in messages]
        finish(dispatcher, messages)
    assert len(seen) == len(set(seen)) == 270


def test_a_job_whose_head_was_forgotten_waits_again(dispatcher: Dispatcher) -> None:
    job_id = job_of(dispatcher, "a", segments=3)
    dispatcher.database.transact(lambda conn: conn.execute(update(t.job).values(head_due_at=None)))
    assert dispatcher.fill(Tier.STANDARD) == 0
    assert dispatcher.database.transact(offers.find_forgotten) == 1
    assert dispatcher.fill(Tier.STANDARD) == 3
    assert {m.job_id for m in sent(dispatcher)} == {job_id}
