"""What broker and task alone cost: our Celery settings, messages and tasks with an empty body.

Run: python -m benchmarks.noop --json -
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.report import emit, parser
from cli.servers.valkey import ValkeyServer
from shared.broker import Broker, build_celery
from shared.messages import SynthMessage
from shared.settings import Settings
from shared.tiers import Tier

WINDOW = 32
WARM = 200
WAIT_S = 120.0
MESSAGES = 2_000


def measure(messages: int) -> dict[str, float]:
    """CPU ms a message of each part, sent window by window as dispatch does."""
    with tempfile.TemporaryDirectory(prefix="vf-noop-") as folder:
        server = ValkeyServer(Path(folder)).start()
        try:
            return _drive(server, messages)
        finally:
            server.stop()


def _drive(server: ValkeyServer, messages: int) -> dict[str, float]:
    assert server.process is not None
    settings = Settings(redis_url=server.url)
    broker = Broker(build_celery(settings), server.url)
    environment = {**os.environ, "VOXFARM_REDIS_URL": server.url}
    worker = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.rivals.empty_worker"],
        env=environment,
        stdout=subprocess.DEVNULL,  # Celery's banner
    )
    try:
        _send(broker, 0, WARM)
        before, own_s = _cpu_s(worker.pid, server.process.pid), time.process_time()
        _send(broker, WARM, messages)
        own_s = time.process_time() - own_s
        after = _cpu_s(worker.pid, server.process.pid)
    finally:
        worker.kill()
        worker.wait()
        broker.close()
    spent = {part: after[part] - before[part] for part in after} | {"publisher": own_s}
    return {part: round(1000 * s / messages, 2) for part, s in spent.items()}


def _send(broker: Broker, first: int, count: int) -> None:
    deadline_s, queue = time.monotonic() + WAIT_S, Tier.BULK.queue
    for start in range(first, first + count, WINDOW):
        end = min(start + WINDOW, first + count)
        broker.send_segments(
            [SynthMessage("job", n, 1, 80, 0.0, Tier.BULK.value) for n in range(start, end)]
        )
        while broker.held(queue) > WINDOW // 2:
            if time.monotonic() > deadline_s:
                raise TimeoutError("the worker does not take its messages")
            time.sleep(0.01)
    while broker.held(queue):
        time.sleep(0.01)


def _cpu_s(worker: int, valkey: int) -> dict[str, float]:
    times = {"worker": psutil.Process(worker), "valkey": psutil.Process(valkey)}
    return {part: (t := process.cpu_times()).user + t.system for part, process in times.items()}


def main() -> None:
    """Measure and report; there is no bar for what is the floor of all others."""
    options = parser(__doc__)
    options.add_argument("--messages", type=int, default=MESSAGES, help="how many to send")
    args = options.parse_args()
    emit({"messages": args.messages, "cpu_ms_a_message": measure(args.messages)}, [], args.json)


if __name__ == "__main__":
    main()
