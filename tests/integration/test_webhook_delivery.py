"""Webhooks through real processes: scheduler, deliver worker, Valkey, and real receivers."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis
from standardwebhooks import Webhook

from cli.servers.valkey import ValkeyServer
from shared.farm import Farm, open_farm
from shared.farm_secret import load_farm_secret
from shared.jobs import JobState
from shared.ledger import delivery_log, jobs, outbox, webhooks
from shared.ledger.delivery_log import Attempt, DeliveryRecord
from shared.ledger.migrate import migrate
from shared.ledger.named_webhook import NamedWebhook
from shared.settings import Settings
from shared.webhook_secrets import SigningSecrets
from shared.webhooks import DEFAULT_EVENTS, DeliveryState, Standing
from tests.contract.ledger.story import TARGET
from tests.factories import new_job
from tests.receiver import Handler, Received, Receiver, answers, ok, running_receiver

DEADLINE_S = 90.0
QUICK = {
    "VOXFARM_WEBHOOK_ALLOW_HTTP": "true",
    "VOXFARM_WEBHOOK_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
    "VOXFARM_WEBHOOK_RETRY_S": "[0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]",
    "VOXFARM_WEBHOOK_HOLD_S": "0.3",
    "VOXFARM_WEBHOOK_HOLD_MAX_S": "1",
    "VOXFARM_WEBHOOK_TIMEOUT_S": "4",
    "VOXFARM_LEASE_S": "2",
    "VOXFARM_VISIBILITY_TIMEOUT_S": "5",
    "VOXFARM_REDISPATCH_AFTER_S": "0.5",
    "VOXFARM_SCHEDULER_PERIOD_S": "0.2",
    "VOXFARM_S3_ENDPOINT": "127.0.0.1:1",
}


@dataclass
class Post:
    """The processes that deliver, and the ledger that they work on."""

    farm: Farm
    environment: dict[str, str]
    crash_file: Path
    secrets: SigningSecrets
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *programs: str) -> None:
        for program in programs:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", program],
                    env=self.environment,
                    stdout=subprocess.DEVNULL,
                )
            )

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()

    def submit(self, url: str, count: int = 1) -> list[str]:
        new = new_job(webhook=NamedWebhook(url, DEFAULT_EVENTS), title="Ein Buch")
        return [
            self.farm.database.transact(
                lambda conn: jobs.accept(conn, new, TARGET, self.secrets.mark)
            ).job_id
            for _ in range(count)
        ]

    def end(self, *job_ids: str) -> None:
        for job_id in job_ids:
            self.farm.database.transact(
                lambda conn, job_id=job_id: jobs.end(conn, job_id, JobState.COMPLETED)  # type: ignore[misc]
            )

    def hook(self, url: str) -> webhooks.WebhookRecord:
        hooks = self.farm.database.read(lambda conn: webhooks.page(conn, "default", limit=99))
        [found] = [one for one in hooks if one.url == url]
        return found

    def log(self, webhook_id: str) -> list[DeliveryRecord]:
        return self.farm.database.read(
            lambda conn: delivery_log.page(conn, webhook_id, limit=1_000)
        )

    def attempts(self, delivery_id: str) -> list[Attempt]:
        return self.farm.database.read(lambda conn: delivery_log.attempts(conn, delivery_id))

    def verify(self, webhook_id: str, received: Received) -> None:
        record = self.farm.database.read(lambda conn: webhooks.get(conn, "default", webhook_id))
        Webhook(self.secrets.written(record.secret)).verify(received.body, received.headers)


def eventually(condition: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    server = ValkeyServer(tmp_path / "valkey").start()
    crash_file = tmp_path / "crash-at"
    environment = {
        **os.environ,
        **QUICK,
        "VOXFARM_DATA_DIR": str(tmp_path),
        "VOXFARM_REDIS_URL": server.url,
        "VOXFARM_CRASH_FILE": str(crash_file),
    }
    # The ledger's own view of the farm; the scheduler is ours, for there is no store to prepare.
    farm = open_farm(Settings(data_dir=tmp_path, redis_url=server.url))
    migrate(farm.database)
    made = Post(farm, environment, crash_file, SigningSecrets(load_farm_secret(farm.settings)))
    try:
        made.start("tests.integration.postman_process", "worker.deliver")
        yield made
    finally:
        made.stop()
        farm.close()
        server.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


def test_each_end_arrives_once_signed_so_that_the_independent_package_agrees(
    post: Post, receiver: Receiver
) -> None:
    ids = post.submit(receiver.url, 20)
    post.end(*ids)
    came = receiver.wait_for(20)
    hook = post.hook(receiver.url)
    for received in came:
        post.verify(hook.id, received)
    eventually(lambda: {one.state for one in post.log(hook.id)} == {DeliveryState.DELIVERED})
    assert len(receiver.received) == len(set(receiver.ids())) == 20
    assert post.hook(receiver.url).standing is Standing.GOOD


def test_a_failing_receiver_gets_the_same_id_and_body_until_it_takes_it(
    post: Post, receiver: Receiver
) -> None:
    receiver.answer = answers(503)
    [job_id] = post.submit(receiver.url)
    post.end(job_id)
    receiver.wait_for(3)
    receiver.answer = ok
    hook = post.hook(receiver.url)
    eventually(lambda: post.log(hook.id)[0].state is DeliveryState.DELIVERED)
    assert len({(one.id, one.body) for one in receiver.received}) == 1
    [record] = post.log(hook.id)
    tries = post.attempts(record.id)
    assert [one.status for one in tries] == [503] * (len(tries) - 1) + [200]
    assert len(tries) == len(receiver.received)


def test_a_receiver_that_never_takes_it_is_given_up_and_may_be_replayed(
    post: Post, receiver: Receiver
) -> None:
    receiver.answer = answers(500)
    post.end(*post.submit(receiver.url))
    hook = post.hook(receiver.url)
    eventually(lambda: post.log(hook.id)[0].state is DeliveryState.FAILED)
    assert len(receiver.received) == 7
    receiver.answer = ok
    [record] = post.log(hook.id)
    post.farm.database.transact(lambda conn: delivery_log.replay(conn, hook.id, record.id))
    eventually(lambda: post.log(hook.id)[0].state is DeliveryState.DELIVERED)
    assert len({(one.id, one.body) for one in receiver.received}) == 1


def test_a_receiver_that_is_gone_is_disabled(post: Post, receiver: Receiver) -> None:
    receiver.answer = answers(410)
    post.end(*post.submit(receiver.url, 3))
    eventually(lambda: post.hook(receiver.url).disabled_at is not None)
    hook = post.hook(receiver.url)
    assert {one.state for one in post.log(hook.id)} == {DeliveryState.FAILED}
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    "point", ["webhook.claimed", "webhook.sent", "webhook.settled", "webhook.marked"]
)
def test_a_process_killed_in_the_middle_of_a_delivery_costs_no_event(
    post: Post, receiver: Receiver, point: str
) -> None:
    """given a process that dies there / when another one runs / then all arrived, as they were."""
    post.crash_file.write_text(point)
    ids = post.submit(receiver.url, 5)
    post.end(*ids)
    eventually(lambda: not post.crash_file.exists())
    eventually(lambda: any(process.poll() is not None for process in post.processes))
    post.start("tests.integration.postman_process", "worker.deliver")
    hook_id = post.hook(receiver.url).id
    eventually(lambda: {one.state for one in post.log(hook_id)} == {DeliveryState.DELIVERED})
    assert len(set(receiver.ids())) == 5
    assert len({(one.id, one.body) for one in receiver.received}) == 5
    assert len(receiver.received) <= 6  # at most the one that was under way came twice
    for received in receiver.received:
        post.verify(hook_id, received)


def test_a_worker_killed_while_the_receiver_thinks_delivers_the_same_again(
    post: Post, receiver: Receiver
) -> None:
    def think(handler: Handler, received: Received) -> None:
        time.sleep(1.0)
        ok(handler, received)

    receiver.answer = think
    post.end(*post.submit(receiver.url))
    receiver.wait_for(1)
    post.processes[1].kill()
    receiver.answer = ok
    post.start("worker.deliver")
    first, second = receiver.wait_for(2)[:2]
    assert (first.id, first.body) == (second.id, second.body)


def test_with_redis_emptied_everything_arrives_all_the_same(post: Post, receiver: Receiver) -> None:
    ids = post.submit(receiver.url, 40)
    with redis.Redis.from_url(post.farm.settings.redis_url) as client:
        for job_id in ids:
            post.end(job_id)
            client.delete("deliver", "unacked")
    receiver.wait_for(40)
    eventually(lambda: len(set(receiver.ids())) == 40)


def test_dead_receivers_delay_no_other(post: Post, receiver: Receiver) -> None:
    """Twelve that swallow connections, with ten events each; the live one does not notice."""

    def swallow(_handler: Handler, _received: Received) -> None:
        time.sleep(30)

    with running_receiver(answer=swallow) as dead:
        for n in range(12):
            post.end(*post.submit(f"{dead.url}/{n}", 10))
        dead.wait_for(8)
        ids = post.submit(receiver.url, 30)
        began = time.monotonic()
        post.end(*ids)
        receiver.wait_for(30)
        # One dead receiver after the other would take 120 time-outs of 4 s.
        assert time.monotonic() - began < 60
        assert len(dead.received) < 120


def test_during_a_change_of_secret_both_verify(post: Post, receiver: Receiver) -> None:
    [job_id] = post.submit(receiver.url)
    hook = post.hook(receiver.url)
    post.farm.database.transact(
        lambda conn: webhooks.rotate(conn, "default", hook.id, post.secrets.mark, overlap_s=600)
    )
    post.end(job_id)
    [received] = receiver.wait_for(1)
    assert len(received.headers["webhook-signature"].split(" ")) == 2
    post.verify(hook.id, received)
    Webhook(post.secrets.written(hook.secret)).verify(received.body, received.headers)


def test_a_worker_with_another_root_secret_sends_nothing_and_burns_nothing(
    post: Post, receiver: Receiver
) -> None:
    post.stop()
    strange = post.environment | {"VOXFARM_FARM_SECRET": "another"}
    post.environment, right = strange, post.environment
    post.start("tests.integration.postman_process", "worker.deliver")
    post.end(*post.submit(receiver.url))
    hook = post.hook(receiver.url)
    eventually(lambda: post.log(hook.id)[0].error is not None)
    [record] = post.log(hook.id)
    assert record.state is DeliveryState.PENDING
    assert record.error == "the farm's processes have different root secrets"
    assert receiver.received == []
    post.stop()
    post.environment = right
    post.start("tests.integration.postman_process", "worker.deliver")
    post.farm.database.transact(lambda conn: delivery_log.replay(conn, hook.id, record.id))
    post.verify(hook.id, receiver.wait_for(1)[0])


def test_a_test_event_arrives_and_tells_whose_it_is(post: Post, receiver: Receiver) -> None:
    post.submit(receiver.url)
    hook = post.hook(receiver.url)
    post.farm.database.transact(lambda conn: outbox.record_test(conn, "default", hook.id))
    [received] = receiver.wait_for(1)
    post.verify(hook.id, received)
    assert hook.id.encode() in received.body
