"""An acknowledgement that fails must not cost a worker one of its places for ever."""

import logging
import signal
from contextlib import closing
from pathlib import Path

import pytest
from kombu import Connection

from cli.servers.valkey import ValkeyServer
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
