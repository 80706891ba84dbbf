"""What is not acknowledged: it costs no worker a place for ever, and comes back soon."""

import logging
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from kombu import Connection

from cli.servers.valkey import ValkeyServer
from shared.broker import build_celery
from shared.settings import Settings
from worker.patient_events import settle

log = logging.getLogger(__name__)


def test_a_failed_acknowledgement_ends_the_connection_it_failed_on(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path / "valkey").start()
    assert server.process is not None
    options = {"socket_timeout": 0.5}
    with closing(Connection(server.url, transport_options=options)) as connection:
        queue = connection.SimpleQueue("q")
        for number in range(2):
            queue.put(number)
        first, second = queue.get(timeout=10), queue.get(timeout=10)
        settle(first.ack_log_error, log, connection.connection_errors)
        assert first.acknowledged
        server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(connection.connection_errors):
                settle(second.ack_log_error, log, connection.connection_errors)
        finally:
            server.process.send_signal(signal.SIGCONT)
    settle(second.ack_log_error, log, connection.connection_errors)  # given up: nobody is told
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
