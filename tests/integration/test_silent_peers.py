"""Connections whose other end has silently gone are given up soon: the options are really set.

That they work is the kernel's business; `scripts/chaos` cuts real connections where it may.
"""

import signal
import socket
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from kombu.exceptions import BatchPublishError, LimitExceeded
from kombu.exceptions import OperationalError as KombuOperationalError
from sqlalchemy import Connection, text

from cli.servers.seaweed import SeaweedServer
from cli.servers.valkey import ValkeyServer
from shared.broker import Broker, build_celery
from shared.broker import _broker_errors as broker_errors
from shared.errors import BrokerError
from shared.ledger.database import Database, open_database
from shared.messages import StepMessage
from shared.settings import Settings
from shared.silent_peers import tcp_options
from shared.store_http import store_http

LIMIT_S = 15.0


def assert_watched_over(connection: socket.socket) -> None:
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    found = {o: connection.getsockopt(socket.IPPROTO_TCP, o) for o in tcp_options()}
    assert found == tcp_options()
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        assert found[socket.TCP_USER_TIMEOUT] <= LIMIT_S * 1000
        idle_s = found[socket.TCP_KEEPIDLE] + (
            found[socket.TCP_KEEPINTVL] * found[socket.TCP_KEEPCNT]
        )
        assert idle_s <= LIMIT_S


def test_connections_to_redis_are_watched_over(valkey: ValkeyServer) -> None:
    app = build_celery(Settings(redis_url=valkey.url))
    broker = Broker(app, valkey.url)
    with closing(broker), app.connection() as connection:
        channel = connection.default_channel
        for pool in (broker._redis.connection_pool, channel.client.connection_pool):
            lent = pool.get_connection()
            try:
                assert_watched_over(lent._sock)
                assert lent.socket_timeout <= LIMIT_S, "an answer is not waited for for ever"
            finally:
                pool.release(lent)


def test_connections_to_postgresql_are_watched_over_from_both_ends(
    postgres_database: str,
) -> None:
    def look(conn: Connection) -> dict[str, str]:
        raw = conn.connection.dbapi_connection
        assert isinstance(raw, psycopg.Connection)
        with socket.socket(fileno=socket.dup(raw.fileno())) as mine:
            assert_watched_over(mine)
        names = ("idle_in_transaction_session_timeout", "tcp_keepalives_idle", "tcp_user_timeout")
        return {n: str(conn.execute(text(f"SHOW {n}")).scalar_one()) for n in names}

    with open_database(postgres_database) as database:
        found = database.transact(look)
    assert found == {
        "idle_in_transaction_session_timeout": "5s",
        "tcp_keepalives_idle": "5",
        "tcp_user_timeout": "8000",
    }


def test_connections_to_the_store_are_watched_over(seaweed: SeaweedServer) -> None:
    pool = store_http(connections=1)
    url = f"http://{seaweed.endpoint}/healthz"
    pool.request("GET", url)
    connection = pool.connection_from_url(url)._get_conn()
    assert connection.sock is not None
    assert_watched_over(connection.sock)
    connection.close()
    pool.clear()


def test_a_frozen_process_keeps_its_locks_for_seconds_only(postgres_database: str) -> None:
    frozen = Database(postgres_database)
    tries = []

    def freeze_the_first_time(conn: Connection) -> None:
        frozen.lock_tier(conn, "bulk")
        tries.append(time.monotonic())
        if len(tries) == 1:
            with open_database(postgres_database) as other:  # waits until the server lets go
                other.transact(lambda held: other.lock_tier(held, "bulk"))

    frozen.transact(freeze_the_first_time)
    frozen.close()
    assert len(tries) == 2, "the transaction was ended, and done again"


@pytest.mark.parametrize("error", [BatchPublishError, LimitExceeded, KombuOperationalError])
def test_whatever_the_client_says_when_redis_does_not_answer_is_one_error(
    error: type[Exception],
) -> None:
    with pytest.raises(BrokerError), broker_errors():
        raise error("uncertain")


def test_a_publish_to_a_redis_that_does_not_answer_fails_and_does_not_hang(
    tmp_path: Path,
) -> None:
    stopped = ValkeyServer(tmp_path / "valkey").start()
    assert stopped.process is not None
    broker = Broker(build_celery(Settings(redis_url=stopped.url)), stopped.url)
    step = StepMessage("step", "job", "plan", 1)
    broker.send_steps([step])
    stopped.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(BrokerError):
            broker.send_steps([step])
    finally:
        stopped.stop(grace_s=0)
        broker.close()
