"""Windows and lost dispatches, on a real Valkey and both ledgers' SQLite form."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from sqlalchemy import Connection, func, select

from cli.servers.valkey import ValkeyServer
from shared.broker import Broker, build_celery
from shared.dispatch import Dispatcher
from shared.errors import BrokerError
from shared.farm import farm_of
from shared.ledger import feeding, steps
from shared.ledger.database import Database
from shared.ledger.migrate import migrate
from shared.ledger.tables import segment, step
from shared.settings import Settings
from shared.steps import StepKind
from shared.tiers import Tier
from tests.contract.ledger import story
from worker.planning import run_plan

WINDOW = 8


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path / "valkey").start()
    yield server
    server.stop()


@pytest.fixture
def dispatcher(server: ValkeyServer, tmp_path: Path) -> Iterator[Dispatcher]:
    settings = Settings(
        data_dir=tmp_path, redis_url=server.url, window_min=WINDOW, redispatch_after_s=0.05
    )
    database = Database(settings.sqlalchemy_url)
    migrate(database)
    broker = Broker(build_celery(settings), settings.redis_url)
    yield Dispatcher(database, broker, settings)
    broker.close()
    database.close()


def queued(server: ValkeyServer) -> int:
    with redis.Redis.from_url(server.url) as client:
        return int(client.llen(Tier.STANDARD.queue))  # type: ignore[arg-type]


def test_the_window_is_filled_and_never_overfilled(
    dispatcher: Dispatcher, server: ValkeyServer
) -> None:
    story.planned_job(dispatcher.database, per_part=50)
    with ThreadPoolExecutor(6) as pool:
        sent = sum(pool.map(lambda _: dispatcher.fill(Tier.STANDARD), range(12)))
    assert sent == WINDOW == queued(server)
    assert dispatcher.broker.held(Tier.STANDARD.queue) == WINDOW


def test_the_first_window_of_a_book_goes_out_before_all_of_it_is_planned(
    dispatcher: Dispatcher, server: ValkeyServer
) -> None:
    """given a book of 5,000 paragraphs / then its first sentences did not wait for its plan."""
    database, settings = dispatcher.database, dispatcher.settings
    with farm_of(settings) as farm:
        job_id = story.submit(database, text="Come in, my friend.\n\n" * 5_000)
        run_plan(farm, story.claim_step(database, job_id, StepKind.PLAN))

    def look(conn: Connection) -> tuple[int, list[float], float]:
        sent = select(segment.c.dispatched_at).where(segment.c.dispatched_at.is_not(None))
        planned = select(step.c.done_at).where(step.c.kind == StepKind.PLAN)
        total = conn.execute(select(func.count()).select_from(segment)).scalar_one()
        return total, list(conn.execute(sent).scalars()), conn.execute(planned).scalar_one()

    total, sent_at, planned_at = database.read(look)
    assert total == 5_000
    assert len(sent_at) == WINDOW == queued(server)
    assert max(sent_at) < planned_at


def test_a_window_is_low_when_a_quarter_is_free(dispatcher: Dispatcher) -> None:
    story.planned_job(dispatcher.database, per_part=50)
    dispatcher.fill(Tier.STANDARD)
    in_flight = dispatcher.database.read(
        lambda conn: feeding.dispatched_before(conn, Tier.STANDARD, -1)
    )
    for done, message in enumerate(sorted(in_flight, key=lambda m: m.index), start=1):
        story.commit(dispatcher.database, story.must_claim(dispatcher.database, message))
        low = dispatcher.database.read(lambda conn: dispatcher.is_low(conn, Tier.STANDARD))
        assert low == (done >= WINDOW // 4)
    assert dispatcher.fill(Tier.STANDARD) == WINDOW


def test_a_flushed_broker_costs_seconds_and_no_segment(
    dispatcher: Dispatcher, server: ValkeyServer
) -> None:
    story.planned_job(dispatcher.database, per_part=20)
    dispatcher.fill(Tier.STANDARD)
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    time.sleep(0.1)
    assert dispatcher.recover_lost() == WINDOW
    assert dispatcher.fill(Tier.STANDARD) == WINDOW
    assert queued(server) == WINDOW


def test_only_what_the_broker_lost_is_sent_again(
    dispatcher: Dispatcher, server: ValkeyServer
) -> None:
    story.planned_job(dispatcher.database, per_part=20)
    dispatcher.fill(Tier.STANDARD)
    with redis.Redis.from_url(server.url) as client:
        client.rpop(Tier.STANDARD.queue)  # popped by a worker that died before noting it
    time.sleep(0.1)
    assert dispatcher.recover_lost() == 1
    assert dispatcher.recover_lost() == 0


def test_a_long_queue_is_not_mistaken_for_a_lost_one(dispatcher: Dispatcher) -> None:
    story.planned_job(dispatcher.database, per_part=20)
    dispatcher.fill(Tier.STANDARD)
    time.sleep(0.2)
    assert dispatcher.recover_lost() == 0


def test_with_the_broker_away_work_stays_marked_and_is_sent_when_it_is_back(
    dispatcher: Dispatcher, server: ValkeyServer
) -> None:
    story.planned_job(dispatcher.database, per_part=20)
    server.stop()
    assert dispatcher.fill(Tier.STANDARD) == WINDOW  # marked; the publish failed quietly
    with pytest.raises(BrokerError):
        dispatcher.recover_lost()
    server.start()
    time.sleep(0.1)
    assert dispatcher.recover_lost() == WINDOW
    assert dispatcher.fill(Tier.STANDARD) == WINDOW
    assert queued(server) == WINDOW


def test_a_lost_step_is_found_and_sent_again(dispatcher: Dispatcher, server: ValkeyServer) -> None:
    story.submit(dispatcher.database)
    assert dispatcher.send_steps() == 1
    assert dispatcher.send_steps() == 0
    time.sleep(0.1)
    assert dispatcher.recover_lost() == 0
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    assert dispatcher.recover_lost() == 1
    assert dispatcher.send_steps() == 1
    [message] = dispatcher.database.read(lambda conn: steps.dispatched_before(conn, -1))
    assert message.dispatch_no == 2
