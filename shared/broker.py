"""The Celery application and the queues on Redis. Sends by task name; knows no ledger, no worker.

Settings follow what was measured on Celery 5.7: late acks with a short visibility timeout, no
prefetching beyond the running tasks, no results, no retries of Celery's own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from celery import Celery
from kombu.entity import Exchange, Queue
from kombu.exceptions import BatchPublishError, LimitExceeded, OperationalError

from shared.errors import BrokerError, SetupError
from shared.messages import (
    DELIVERY_QUEUE,
    DELIVERY_TASK,
    STEP_TASK,
    SYNTH_TASK,
    DeliveryMessage,
    StepMessage,
    SynthMessage,
)
from shared.settings import Settings
from shared.silent_peers import tcp_options
from shared.steps import StepKind
from shared.tiers import Tier

# Whatever Redis, or its client, says when it cannot be reached or does not answer in time.
_AWAY = (redis.RedisError, OperationalError, BatchPublishError, LimitExceeded)
ANSWER_S = 5  # Redis answers within milliseconds, or not at all
# A consumer drops a connection on which Redis, asked for messages for a second, owes the answer for
# so long; it looks as often.
HEALTH_CHECK_S = 3
# Who puts back what dead workers left holds a lock meanwhile. One that dies with the lock, or whose
# release is not answered, must not keep all others from it: two at once do no harm.
RESTORE_LOCK_S = ANSWER_S
SYNTH_QUEUES = tuple(tier.queue for tier in Tier)
STEP_QUEUES = tuple(kind.value for kind in StepKind)


def build_celery(settings: Settings) -> Celery:
    """A Celery app bound to this farm's Redis, with every queue declared and no task registered."""
    exchange = Exchange("voxfarm", type="direct")
    app = Celery("voxfarm", broker=settings.redis_url, backend=None, set_as_current=False)
    app.conf.update(
        task_queues=[
            Queue(name, exchange, routing_key=name)
            for name in (*SYNTH_QUEUES, *STEP_QUEUES, DELIVERY_QUEUE)
        ],
        task_create_missing_queues=False,
        task_default_queue=Tier.STANDARD.queue,
        task_default_exchange="voxfarm",
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        task_send_sent_event=False,  # a quarter of Flower's traffic, for what the ledger knows
        worker_send_task_events=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_consumer="worker.patient_consumer:PatientConsumer",
        worker_log_color=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=5,
        broker_pool_limit=32,  # Flower asks six things at once, and hangs for good on a small pool
        broker_transport_options={
            "visibility_timeout": settings.visibility_timeout_s,
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            "unacked_mutex_expire": RESTORE_LOCK_S,
            "socket_connect_timeout": 5,
            # A publish or an ack that gets no answer must not hold its thread for ever, nor a
            # consumer wait for messages on a connection that the other end has forgotten.
            "socket_timeout": ANSWER_S,
            "health_check_interval": HEALTH_CHECK_S,
            "socket_keepalive": True,
            "socket_keepalive_options": tcp_options(),
            # A publish with Redis away fails at once: the ledger remembers, the scheduler resends.
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0.1,
        },
        event_queue_expires=60,
        event_queue_ttl=5,
        control_queue_expires=60,
        enable_utc=True,
        timezone="UTC",
    )
    return app


class Broker:
    """What dispatch needs of the queues: send messages, and tell which are still there."""

    def __init__(self, app: Celery, redis_url: str) -> None:
        self._app = app
        self._redis = redis.Redis.from_url(
            redis_url.replace("redis+socket://", "unix://"),
            socket_timeout=ANSWER_S,
            socket_connect_timeout=2,
            socket_keepalive=True,
            socket_keepalive_options=tcp_options(),
        )

    def send_segments(self, messages: Sequence[SynthMessage]) -> None:
        """Publish sentences to their tiers' queues, in order. Raises BrokerError."""
        self._send(
            SYNTH_TASK, [(Tier(m.tier).queue, segment_task_id(m), m.to_kwargs()) for m in messages]
        )

    def send_steps(self, messages: Sequence[StepMessage]) -> None:
        """Publish steps to the queues of their kinds. Raises BrokerError."""
        self._send(STEP_TASK, [(m.kind, step_task_id(m), m.to_kwargs()) for m in messages])

    def send_deliveries(self, messages: Sequence[DeliveryMessage]) -> None:
        """Publish deliveries of webhooks. Raises BrokerError."""
        self._send(
            DELIVERY_TASK, [(DELIVERY_QUEUE, delivery_task_id(m), m.to_kwargs()) for m in messages]
        )

    def _send(self, task: str, letters: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
        if not letters:
            return
        with (
            _broker_errors(),
            self._app.producer_pool.acquire(block=True, timeout=10) as producer,
            producer.batch(),
        ):
            for queue, task_id, kwargs in letters:
                self._app.send_task(
                    task,
                    kwargs=kwargs,
                    task_id=task_id,
                    queue=queue,
                    producer=producer,
                    ignore_result=True,
                    retry=False,
                )

    def held(self, queue: str) -> int:
        """Messages of a queue that wait or are with a worker. Raises BrokerError."""
        with _broker_errors():
            return int(self._redis.llen(queue)) + sum(
                1 for entry in self._unacked() if entry[2] == queue
            )

    def held_ids(self, queue: str) -> frozenset[str]:
        """Task ids of a queue's messages that wait or are with a worker. Raises BrokerError."""
        with _broker_errors():
            # The waiting ones first: a message moves from there to `unacked`, never back unseen.
            waiting = [json.loads(raw) for raw in self._redis.lrange(queue, 0, -1)]
            taken = [entry[0] for entry in self._unacked() if entry[2] == queue]
        return frozenset(message["headers"]["id"] for message in waiting + taken)

    def _unacked(self) -> list[Any]:
        return [json.loads(raw) for raw in self._redis.hvals("unacked")]

    def ping(self) -> None:
        """Raise BrokerError unless Redis answers."""
        with _broker_errors():
            self._redis.ping()

    def check_setup(self) -> None:
        """Refuse a Redis that would lose or split our queues. Raises SetupError, BrokerError."""
        with _broker_errors():
            info: Any = self._redis.info()
        if info.get("redis_mode") == "cluster":
            raise SetupError(
                "Redis Cluster cannot carry Celery queues: use one Redis with replicas"
            )
        if info.get("maxmemory") and info.get("maxmemory_policy") != "noeviction":
            raise SetupError(
                f"Redis may evict queued work (maxmemory-policy {info['maxmemory_policy']}): "
                "set it to noeviction"
            )

    def close(self) -> None:
        """Close all connections."""
        self._app.close()
        self._redis.close()


def segment_task_id(message: SynthMessage) -> str:
    """The Celery task id of one dispatch of one segment."""
    return f"{message.job_id}.{message.index}.{message.dispatch_no}"


def step_task_id(message: StepMessage) -> str:
    """The Celery task id of one dispatch of one step."""
    return f"{message.step_id}.{message.dispatch_no}"


def delivery_task_id(message: DeliveryMessage) -> str:
    """The Celery task id of one dispatch of one delivery."""
    return f"{message.delivery_id}.{message.dispatch_no}"


@contextmanager
def _broker_errors() -> Iterator[None]:
    try:
        yield
    except (*_AWAY, OSError, TimeoutError) as error:
        raise BrokerError(f"Redis is away: {type(error).__name__}") from error
