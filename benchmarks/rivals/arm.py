"""One rival under the common load: a real Valkey, a real worker, a driver that publishes."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import redis
from celery import Celery

from benchmarks.load import BASE_S, PER_ITEM_S, Batch, Load, summary, waits
from cli.servers.valkey import ValkeyServer

SCRIPT = Path(__file__).with_name("worker.py")
WARM_SENTENCES = 24
READY_S = 60.0
KILL_SENTENCES = 60
QUIET_S = 25.0  # five visibility timeouts: what has not come back by then never does


@dataclass(frozen=True, slots=True)
class Rival:
    """How its worker is started and where the driver sends what."""

    kind: str
    python: Path
    rush_queue: str = "rush"


def plain() -> Rival:
    """Plain Celery, a task a sentence, no batching."""
    return Rival("plain", Path(sys.executable))


def fifo() -> Rival:
    """Dynamic batches behind one queue for everything."""
    return Rival("fifo", Path(sys.executable), rush_queue="bulk")


def celery_batches(python: Path) -> Rival:
    """celery-batches in its own environment."""
    return Rival("batches", python)


class Bench:
    """A Valkey, the rival's worker, and the driver's side of its queues."""

    def __init__(self, rival: Rival, server: ValkeyServer, log: Path) -> None:
        self._rival = rival
        self._server = server
        self._log = log
        self.redis = redis.Redis.from_url(server.url)
        self._app = Celery("driver", broker=server.url, backend=None, set_as_current=False)
        self._app.conf.update(task_ignore_result=True)
        self.worker = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [self._rival.python, "-P", SCRIPT, self._rival.kind, self._server.url]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*command, str(BASE_S), str(PER_ITEM_S)],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def publish(self, tier: str, numbers: range) -> None:
        """Send numbered sentences to the queue of their tier."""
        queue = self._rival.rush_queue if tier == "rush" else "bulk"
        with self._app.producer_pool.acquire(block=True) as producer:
            for number in numbers:
                sentence = {"id": f"{tier}{number}", "tier": tier, "sent_at": time.time()}
                self._app.send_task("speak", kwargs=sentence, queue=queue, producer=producer)

    def done(self) -> int:
        """How many sentences have been spoken."""
        return int(self.redis.llen("done"))  # type: ignore[arg-type]

    def wait_done(self, count: int, timeout_s: float) -> None:
        """Wait for so many; TimeoutError with the last words of the worker's log."""
        deadline_s = time.monotonic() + timeout_s
        while self.done() < count:
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"{self._rival.kind}: {self.done()} of {count} sentences after {timeout_s:g} s;"
                    f" its log ends: {self._log.read_text()[-1000:]}"
                )
            time.sleep(0.02)

    def lines(self) -> list[dict[str, Any]]:
        """What was noted of each sentence spoken."""
        return [json.loads(line) for line in self.redis.lrange("done", 0, -1)]  # type: ignore[union-attr]

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far, by part."""
        assert self._server.process is not None
        worker = psutil.Process(self.worker.pid)
        spent = {
            "worker": [worker, *worker.children(recursive=True)],
            "valkey": [psutil.Process(self._server.process.pid)],
        }
        times = {part: [p.cpu_times() for p in processes] for part, processes in spent.items()}
        return {part: sum(t.user + t.system for t in each) for part, each in times.items()}

    def kill_and_restart(self) -> None:
        """Kill the worker, all of its processes, and start another."""
        os.killpg(self.worker.pid, signal.SIGKILL)
        self.worker.wait()
        self.worker = self._start()

    def restart_empty(self) -> None:
        """Begin anew with nothing queued."""
        os.killpg(self.worker.pid, signal.SIGKILL)
        self.worker.wait()
        self.redis.flushall()
        self.worker = self._start()

    def close(self) -> None:
        """End the worker."""
        os.killpg(self.worker.pid, signal.SIGKILL)
        self.worker.wait()
        self._app.close()
        self.redis.close()


@contextmanager
def _bench(rival: Rival) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="vf-rival-") as folder:
        server = ValkeyServer(Path(folder)).start()
        bench = Bench(rival, server, Path(folder) / "worker.log")
        try:
            yield bench
        finally:
            bench.close()
            server.stop()


def measure(rival: Rival, load: Load) -> dict[str, object]:
    """All figures of one rival."""
    with _bench(rival) as bench:
        figures = _saturate(bench, load)
        lost, doubled = 0, 0
        for _ in range(load.kills):
            bench.restart_empty()
            gone, twice = _kill(bench)
            lost, doubled = lost + gone, doubled + twice
    return {**figures, "kills": load.kills, "lost_sentences": lost, "doubled_sentences": doubled}


def _saturate(bench: Bench, load: Load) -> dict[str, object]:
    publishing_s = time.process_time()
    bench.publish("bulk", range(load.bulk))
    publishing_s = time.process_time() - publishing_s
    bench.wait_done(WARM_SENTENCES, READY_S)
    before, began_s, began_at, count = bench.cpu_s(), time.monotonic(), time.time(), bench.done()
    rush = 0
    for rush, at_s in enumerate(load.rush_times_s(), 1):
        time.sleep(max(0.0, began_s + at_s - time.monotonic()))
        bench.publish("rush", range(rush, rush + 1))
    time.sleep(max(0.0, began_s + load.seconds - time.monotonic()))
    after, ended_at, spoken = bench.cpu_s(), time.time(), bench.done() - count
    lines = [line for line in bench.lines() if began_at < line["ended_at"] <= ended_at]
    waits_s = [line["ended_at"] - line["sent_at"] for line in lines if line["tier"] == "rush"]
    cpu_ms = {part: round(1000 * (after[part] - before[part]) / spoken, 2) for part in after}
    return {
        **summary(_batches(lines)),
        **waits("rush_batches", waits_s),
        "rush_never_spoken": rush - len(waits_s),
        "cpu_ms_per_sentence": {
            **cpu_ms,
            "publisher": round(1000 * publishing_s / load.bulk, 2),
        },
    }


def _batches(lines: list[dict[str, Any]]) -> list[Batch]:
    by_end: dict[float, list[str]] = {}
    for line in lines:
        by_end.setdefault(line["ended_at"], []).append(line["tier"])
    return [Batch(at, tiers.count("rush"), tiers.count("bulk")) for at, tiers in by_end.items()]


def _kill(bench: Bench) -> tuple[int, int]:
    """Kill the worker in the middle of some sentences; how many never come, and come twice."""
    bench.publish("bulk", range(KILL_SENTENCES))
    bench.wait_done(KILL_SENTENCES // 3, READY_S)
    bench.kill_and_restart()
    changed_s, seen = time.monotonic(), bench.done()
    while time.monotonic() - changed_s < QUIET_S:
        ids = [line["id"] for line in bench.lines()]
        if len(set(ids)) == KILL_SENTENCES:
            break
        if len(ids) != seen:
            changed_s, seen = time.monotonic(), len(ids)
        time.sleep(0.2)
    ids = [line["id"] for line in bench.lines()]
    return KILL_SENTENCES - len(set(ids)), len(ids) - len(set(ids))
