"""A rival's Celery worker, run as a script: it knows only Celery and redis-py, not Voxfarm.

    python worker.py plain|fifo|batches REDIS_URL BASE_S PER_ITEM_S

plain    one task a sentence, one after the other; a queue for rush and one for bulk
fifo     one queue for all; sixteen threads whose sentences share batches of up to 8
batches  celery-batches: up to 8 messages a task (runs on Celery 5.6 only)

The device takes `BASE_S + PER_ITEM_S * n` seconds for a batch of n and runs one batch at a time.
Each sentence it has spoken becomes a line in the Redis list `done`.
"""

import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
from celery import Celery

MAX_BATCH = 8
FILL_S = 0.05
FLUSH_S = 0.4  # celery-batches flushes by this clock whatever runs: shorter ones halve its batches
VISIBILITY_S = 5
QUEUES = {"plain": "rush,bulk", "fifo": "bulk", "batches": "rush,bulk"}
POOLS = {
    "plain": ["--pool=solo"],
    "fifo": ["--pool=threads", "--concurrency=16"],
    "batches": ["--pool=threads", "--concurrency=1", f"--prefetch-multiplier={2 * MAX_BATCH}"],
}


class Device:
    """Sleeps for a batch, then notes when each of its sentences was done."""

    def __init__(self, url: str, base_s: float, per_item_s: float) -> None:
        self._redis = redis.Redis.from_url(url)
        self._base_s, self._per_item_s = base_s, per_item_s

    def speak(self, sentences: Sequence[dict[str, object]]) -> None:
        """Run one batch."""
        time.sleep(self._base_s + self._per_item_s * len(sentences))
        ended_at = time.time()
        lines = [
            json.dumps({**sentence, "ended_at": ended_at, "batch": len(sentences)})
            for sentence in sentences
        ]
        self._redis.rpush("done", *lines)


class Batcher:
    """Collects what threads ask for into batches, in order of arrival."""

    def __init__(self, speak: Callable[[Sequence[dict[str, object]]], None]) -> None:
        self._speak = speak
        self._asked: queue.Queue[tuple[dict[str, object], threading.Event]] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def say(self, sentence: dict[str, object]) -> None:
        """Wait until the sentence has been spoken."""
        spoken = threading.Event()
        self._asked.put((sentence, spoken))
        spoken.wait()

    def _run(self) -> None:
        while True:
            batch = [self._asked.get()]
            until_s = time.monotonic() + FILL_S
            while len(batch) < MAX_BATCH:
                try:
                    batch.append(self._asked.get(timeout=max(0.0, until_s - time.monotonic())))
                except queue.Empty:
                    break
            self._speak([sentence for sentence, _ in batch])
            for _, spoken in batch:
                spoken.set()


def build(kind: str, url: str, device: Device) -> Celery:
    """The rival's app with its one task `speak`, as robust as Celery's own settings make it."""
    app = Celery("rival", broker=url, backend=None)
    app.conf.update(
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_default_queue="bulk",
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_S,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        },
    )
    if kind == "plain":

        @app.task(name="speak")
        def speak(**sentence: object) -> None:
            device.speak([sentence])

    elif kind == "fifo":
        batcher = Batcher(device.speak)

        @app.task(name="speak")
        def speak(**sentence: object) -> None:
            batcher.say(sentence)

    else:
        from celery_batches import Batches  # noqa: PLC0415 - only in this rival's own environment

        @app.task(name="speak", base=Batches, flush_every=MAX_BATCH, flush_interval=FLUSH_S)
        def speak(requests: Sequence[Any]) -> None:
            sentences = [request.kwargs for request in requests]
            for first in range(0, len(sentences), MAX_BATCH):
                device.speak(sentences[first : first + MAX_BATCH])

    return app


def main(kind: str, url: str, base_s: str, per_item_s: str) -> None:
    """Work until SIGTERM."""
    app = build(kind, url, Device(url, float(base_s), float(per_item_s)))
    app.worker_main(
        [
            "worker",
            f"--queues={QUEUES[kind]}",
            *POOLS[kind],
            "--loglevel=WARNING",
            "--without-gossip",
            "--without-mingle",
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
