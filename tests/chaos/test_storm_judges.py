"""The judges of a storm notice what they are there for: each kind of harm, done on purpose."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import redis
from minio import Minio
from sqlalchemy import delete, update
from standardwebhooks import Webhook

from cli.servers.valkey import ValkeyServer
from shared import object_keys
from shared.broker import build_celery
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.migrate import migrate
from shared.settings import Settings
from shared.storage import S3Store
from shared.webhooks import DeliveryState
from tests.chaos.storm import ground
from tests.chaos.storm.database_clock import CLOCK_FILE, SqliteClock
from tests.chaos.storm.leftovers import Leftovers, look
from tests.chaos.storm.letterbox import Letterbox
from tests.chaos.storm.messages import Reorder, SendTwice
from tests.chaos.storm.told import Delivery, faults_of
from tests.contract.ledger import story
from tests.receiver import Received

SECRET = Webhook(b"a secret of thirty-two bytes....")
STRANGER = Webhook(b"another of thirty-two bytes.....")
EVENT = Delivery(
    DeliveryState.DELIVERED, None, "hook", "event", "job.completed", "job", "http://r/1"
)


def came(
    event_id: str = "event",
    type_: str = "job.completed",
    path: str = "/1",
    more: str = "",
    secret: Webhook = SECRET,
) -> Received:
    body = json.dumps({"type": type_, "data": {"id": "job", "more": more}})
    at = 1_000_000_000  # a clock that was set on purpose is no fault
    signature = secret.sign(event_id, datetime.fromtimestamp(at, UTC), body)
    headers = {
        "webhook-id": event_id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,bm9uZQ== {signature}",
    }
    return Received(0.0, "POST", path, headers, body.encode())


def judged(
    *received: Received,
    deliveries: tuple[Delivery, ...] = (EVENT,),
    taken: bool = True,
) -> list[str]:
    return list(
        faults_of(
            deliveries,
            received,
            end="job.completed",
            has_taken=lambda _id: taken,
            secrets={"hook": SECRET},
        )
    )


def test_one_event_that_came_twice_alike_is_as_it_should_be() -> None:
    assert judged(came(), came()) == []


@pytest.mark.parametrize(
    ("received", "word"),
    [
        ((came(), came(more="!")), "bodies"),
        ((came(), came("another")), "nothing"),
        ((came(type_="job.failed"),), "another event"),
        ((came(path="/2"),), "another webhook"),
        ((came(secret=STRANGER),), "signature"),
    ],
)
def test_whatever_is_wrong_with_what_came_is_named(
    received: tuple[Received, ...], word: str
) -> None:
    [fault] = judged(*received)
    assert word in fault


def test_an_event_too_many_or_too_few_or_never_taken_is_named() -> None:
    assert "never taken" in judged(came(), taken=False)[0]
    assert "end events []" in judged(deliveries=())[0]
    assert "end events" in judged(came(), deliveries=(EVENT, EVENT))[0]


def test_the_letterbox_takes_each_event_in_the_end_and_not_every_one_at_first() -> None:
    with Letterbox(7, sender_waits_s=0.1) as letterbox:
        tries = [tries_until_taken(letterbox, f"event{n}") for n in range(20)]
        letterbox.shut()
        with pytest.raises(httpx.ConnectError):
            httpx.post(letterbox.url(0))
        letterbox.open()
        assert tries_until_taken(letterbox, "later")
    assert set(tries) > {1}
    assert max(tries) <= 4
    assert all(letterbox.has_taken(f"event{n}") for n in range(20))
    assert not letterbox.has_taken("none")
    assert len(letterbox.received()) >= sum(tries)


def tries_until_taken(letterbox: Letterbox, event_id: str) -> int:
    for number in range(1, 10):
        try:
            reply = httpx.post(letterbox.url(1), headers={"webhook-id": event_id}, timeout=30)
        except httpx.TransportError:
            continue
        if reply.status_code == httpx.codes.OK:
            return number
    raise AssertionError(event_id)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    migrate(database)
    return database


def test_what_is_left_in_the_store_and_what_is_missing_is_named(
    database: Database, s3_settings: Settings
) -> None:
    settings = s3_settings.model_copy(update={"s3_bucket": f"left{random.randrange(10**9)}"})
    store = S3Store(settings)
    store.ensure_bucket()
    client = Minio(
        settings.s3_endpoint,
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key.get_secret_value(),
        secure=False,
        region=settings.s3_region,
    )

    def left() -> Leftovers:
        return look(client, settings.s3_bucket, database)

    story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    claimed = story.must_claim(database, message)
    story.commit(database, claimed)
    key = story.audio_of(claimed).object_key
    store.put(object_keys.PROBE, b"1", content_type="text/plain")
    assert left().missing == (key,)
    store.put(key, b"audio", content_type="audio/flac")
    assert left().findings() == []
    store.put("t/a/jobs/x/out/y", b"file", content_type="audio/flac")
    store.open_multipart("t/a/jobs/x/out/z", content_type="audio/flac").put_part(1, b"part")
    assert (left().unknown, left().uploads) == (("t/a/jobs/x/out/y",), ("t/a/jobs/x/out/z",))
    assert len(left().findings()) == 2
    o = t.stored_object
    database.transact(lambda conn: conn.execute(update(o).values(refs=0)))
    assert left().unneeded == (key,)
    assert len(left().miscounted) == 1
    database.transact(lambda conn: conn.execute(update(t.segment).values(object_key=None)))
    database.transact(lambda conn: conn.execute(delete(o)))
    assert left().unknown == (key, "t/a/jobs/x/out/y")
    database.close()


@pytest.mark.timeout(120)
def test_sqlites_clock_is_set_in_other_processes_and_their_own_clocks_are_wrong(
    tmp_path: Path,
) -> None:
    clock = SqliteClock(tmp_path / "clock")

    def read(**environment: str) -> Mapping[str, float]:
        code = (
            "import json, time; from shared.ledger.clock import read_clock;"
            "from shared.ledger.database import Database;"
            f"d = Database('sqlite:///{tmp_path / 'any.db'}');"
            "print(json.dumps({'sql': d.read(read_clock), 'own': time.time()}))"
        )
        path = os.pathsep.join([str(ground.WRONG_CLOCKS), str(Path.cwd())])
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, "PYTHONPATH": path, **environment},
            check=True,
            capture_output=True,
        )
        return {name: at - time.time() for name, at in json.loads(done.stdout).items()}

    stormy = {"VOXFARM_WRONG_CLOCKS": "1", CLOCK_FILE: str(tmp_path / "clock")}
    assert abs(read()["sql"]) < 60
    assert abs(read(**stormy)["sql"]) < 60
    owns = [read(**stormy)["own"] for _ in range(3)]
    assert max(map(abs, owns)) > 60
    clock.step(-7_200)
    clock.step(600)
    assert abs(read(**stormy)["sql"] + 6_600) < 60, "they see what it is set by, all together"


@dataclass(frozen=True)
class Valkey:
    """The queues alone, as the faults of messages reach them."""

    url: str

    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[Valkey]:
    server = ValkeyServer(tmp_path / "valkey").start()
    yield Valkey(server.url)
    server.stop()


@pytest.mark.parametrize("queue", ground.QUEUES)
def test_messages_of_every_queue_come_twice_and_in_another_order(
    queues: Valkey, queue: str
) -> None:
    with queues.redis() as client:
        waiting = [json.dumps({"number": number}).encode() for number in range(20)]
        client.rpush(queue, *waiting)
        taken = {"number": "taken"}
        client.hset("unacked", "tag", json.dumps([taken, "voxfarm", queue]))
        SendTwice(queues, 1).begin()
        come = client.lrange(queue, 0, -1)
        assert sorted(come) == sorted([*waiting, *waiting, json.dumps(taken).encode()])
        client.delete(queue)
        client.rpush(queue, *waiting)
        Reorder(queues, 1).begin()
        now = client.lrange(queue, 0, -1)
    assert now != waiting
    assert sorted(now) == sorted(waiting)


def test_every_queue_that_the_farm_declares_is_among_them() -> None:
    app = build_celery(Settings())
    assert {queue.name for queue in app.conf.task_queues} == set(ground.QUEUES)
