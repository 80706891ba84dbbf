"""What is not acknowledged: it costs no worker a place for ever, and comes back soon."""

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from kombu import Connection
from redis import Redis

from cli.servers.valkey import ValkeyServer
from shared.broker import build_celery
from shared.settings import Settings
from worker.redis_transport import Transport


def test_acknowledgements_leave_together_and_free_their_places_at_once(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path / "valkey").start()
    with closing(Connection(server.url, transport=Transport)) as connection:
        queue = connection.SimpleQueue("q")
        for number in range(4):
            queue.put(number)
        channel = queue.consumer.channel
        channel.basic_qos(0, 3, apply_global=False)
        messages = [queue.get(timeout=10) for _ in range(3)]
        assert not channel.qos.can_consume()
        for message in messages[:2]:
            message.ack()
        messages[2].reject()
        assert channel.qos.can_consume()
        assert channel.client.hlen("unacked") == 3
        channel.qos.settle()
        assert not channel.client.exists("unacked", "unacked_index")
        queue.get(timeout=10).ack()
        assert channel.client.hlen("unacked") == 1
    assert not Redis.from_url(server.url).exists("unacked", "unacked_index", "q")  # at the close
    server.stop(grace_s=0)


def test_a_failed_acknowledgement_is_an_error(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path / "valkey").start()
    assert server.process is not None
    options = {"socket_timeout": 0.5}
    with closing(
        Connection(server.url, transport=Transport, transport_options=options)
    ) as connection:
        queue = connection.SimpleQueue("q")
        queue.put("a sentence")
        message = queue.get(timeout=10)
        server.process.send_signal(signal.SIGSTOP)
        try:
            message.ack()
            with pytest.raises(connection.connection_errors):
                queue.consumer.channel.qos.settle()
        finally:
            server.process.send_signal(signal.SIGCONT)
    server.stop(grace_s=0)


DIES_WITH_THE_LOCK = """
import os
from kombu.transport.redis import Mutex
from shared.broker import build_celery
from shared.settings import Settings

channel = build_celery(Settings()).connection_for_read().channel()
with Mutex(channel.client, channel.unacked_mutex_key, channel.unacked_mutex_expire):
    os._exit(0)
"""


def test_what_a_dead_worker_held_comes_back_though_another_died_putting_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ValkeyServer(tmp_path / "valkey").start()
    monkeypatch.setenv("VOXFARM_REDIS_URL", server.url)
    monkeypatch.setenv("VOXFARM_LEASE_S", "1")
    monkeypatch.setenv("VOXFARM_VISIBILITY_TIMEOUT_S", "2")
    with closing(build_celery(Settings()).connection_for_read()) as connection:
        queue = connection.SimpleQueue("q")
        queue.put("a sentence")
        queue.get(timeout=10)  # and whoever took it is never heard of again
        subprocess.run([sys.executable, "-P", "-c", DIES_WITH_THE_LOCK], check=True)
        channel = connection.default_channel
        assert channel.client.exists(channel.unacked_mutex_key)
        deadline = time.monotonic() + 30
        while not channel.client.llen("q"):
            assert time.monotonic() < deadline, "it stays with the dead"
            channel.qos.restore_visible(interval=1)
            time.sleep(0.1)
    server.stop(grace_s=0)
