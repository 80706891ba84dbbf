"""Webhooks under load, half of them to a dead receiver: how late the living one's news is.

Jobs end at a steady rate, as closing steps end them, on a real ledger; scheduler, deliver worker,
Valkey and the receivers are real. A delay runs from the end of a job, by the ledger's clock, to
the arrival of its event. The dead receiver takes connections and never answers, which costs a
sender the most; `--dead refuse` has nobody listen at all.

The bars are about PostgreSQL. With `--sqlite` the same figures are shown, not judged.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil
from sqlalchemy import Connection, func, select, update

from benchmarks.load import waits
from benchmarks.report import Bar, at_least, at_most, emit, parser
from cli.ports import LOOPBACK
from cli.servers.seaweed import SeaweedServer
from cli.servers.valkey import ValkeyServer
from shared.farm import Farm, farm_of
from shared.farm_secret import load_farm_secret
from shared.jobs import JobState
from shared.ledger import jobs, tables
from shared.ledger.migrate import migrate
from shared.ledger.named_webhook import NamedWebhook
from shared.settings import DEFAULT_TIERS, Settings
from shared.tiers import Tier
from shared.webhook_secrets import SigningSecrets
from shared.webhooks import DEFAULT_EVENTS
from tests.factories import new_job
from tests.receiver import Receiver, running_receiver
from tests.servers import PostgresServer

ENDERS = 4
CHUNK = 500
LAST_S = 30.0
P95_S = 2.0
RATE_REACHED = 0.98  # of the rate asked for: at a lower one the delays would say nothing


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs end, and how many a second."""

    per_s: float
    seconds: float

    @property
    def count(self) -> int:
        """Jobs in all."""
        return int(self.per_s * self.seconds)


def measure(load: Load, *, dead: str, on_postgres: bool) -> dict[str, object]:
    """Run the load once and return its figures."""
    with tempfile.TemporaryDirectory(prefix="vf-hooks-") as name, ExitStack() as stack:
        folder = Path(name)
        settings = _settings(folder, stack, _postgres(stack) if on_postgres else "")
        farm = stack.enter_context(farm_of(settings))
        migrate(farm.database)
        living = stack.enter_context(running_receiver())
        dead_url = stack.enter_context(_dead(dead))
        ids = _accept(farm, load.count, (living.url, dead_url))
        processes = [
            _start(settings, stack, name) for name in ("worker.scheduler", "worker.deliver")
        ]
        time.sleep(5)  # their start is not what is measured
        before = {p.pid: _cpu_s(p) for p in processes}
        own_s = time.process_time()
        lag_s = _end_all(farm, ids, load)
        _wait(living, load.count // 2)
        own_s = time.process_time() - own_s
        used = {p.args[2]: round(_cpu_s(p) - before[p.pid], 1) for p in processes}
        used["ending jobs, and receiving"] = round(own_s, 1)
        return {"ledger": farm.database.dialect, **_figures(farm, living, load)} | {
            "reached_per_s": round(load.count / (load.seconds + lag_s), 1),
            "behind_s": round(lag_s, 2),
            "cpu_s": used,
        }


def _settings(folder: Path, stack: ExitStack, database_url: str) -> Settings:
    valkey = ValkeyServer(folder / "valkey").start()
    stack.callback(valkey.stop)
    store = SeaweedServer(folder / "store").start()
    stack.callback(store.stop)
    return Settings.model_validate(
        {
            "data_dir": folder,
            "database_url": database_url,
            "redis_url": valkey.url,
            "s3_endpoint": store.endpoint,
            "s3_access_key": store.access_key,
            "s3_secret_key": store.secret_key,
            "webhook_allow_http": True,
            "webhook_allowed_networks": ["127.0.0.0/8"],
        }
    )


def _postgres(stack: ExitStack) -> str:
    folder = Path(tempfile.mkdtemp(prefix="vf-hooks-pg-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)  # the server runs as another user
    server = PostgresServer(folder)
    stack.callback(server.stop)
    return server.start().url


def _start(settings: Settings, stack: ExitStack, module: str) -> "subprocess.Popen[bytes]":
    plain = settings.model_dump(mode="json", exclude_defaults=True)
    plain["s3_secret_key"] = settings.s3_secret_key.get_secret_value()
    environment = {
        f"VOXFARM_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in plain.items()
    }
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


@contextmanager
def _dead(kind: str) -> Iterator[str]:
    """The URL of a receiver that takes connections and says nothing, or that is not there."""
    with closing(socket.create_server((LOOPBACK, 0), backlog=1_000)) as listener:
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}/dead"
        if kind == "refuse":
            listener.close()
        yield url


def _accept(farm: Farm, count: int, urls: tuple[str, str]) -> list[str]:
    """Jobs that tell the one and the other receiver by turns. Nobody plans them."""
    mark_of = SigningSecrets(load_farm_secret(farm.settings)).mark
    target = DEFAULT_TIERS[Tier.STANDARD]

    def write(conn: Connection, first: int, last: int) -> list[str]:
        made = [
            jobs.accept(
                conn,
                new_job(webhook=NamedWebhook(urls[n % 2], DEFAULT_EVENTS), title="A book"),
                target,
                mark_of,
            ).job_id
            for n in range(first, last)
        ]
        conn.execute(update(tables.step).values(not_before=1e12))
        return made

    ids: list[str] = []
    for first in range(0, count, CHUNK):
        last = min(first + CHUNK, count)
        ids += farm.database.transact(lambda conn, a=first, b=last: write(conn, a, b))  # type: ignore[misc]
    return ids


def _end_all(farm: Farm, ids: list[str], load: Load) -> float:
    """End the jobs at their times. Returns how far behind the last one was, in seconds."""
    began_s = time.monotonic()

    def end(n: int) -> float:
        due_s = began_s + n / load.per_s
        time.sleep(max(0.0, due_s - time.monotonic()))
        farm.database.transact(lambda conn: jobs.end(conn, ids[n], JobState.COMPLETED))
        farm.postman.send_due()
        return time.monotonic() - due_s

    with ThreadPoolExecutor(ENDERS) as pool:
        return max(pool.map(end, range(len(ids))))


def _wait(living: Receiver, count: int) -> None:
    deadline_s = time.monotonic() + LAST_S
    while len(set(living.ids())) < count and time.monotonic() < deadline_s:
        time.sleep(0.05)


def _figures(farm: Farm, living: Receiver, load: Load) -> dict[str, object]:
    delays_s = []
    for one in living.received:
        at = datetime.fromisoformat(json.loads(one.body)["timestamp"])
        delays_s.append(one.at - at.timestamp())
    return {
        "jobs_per_s": load.per_s,
        "seconds": load.seconds,
        "living_expected": load.count // 2,
        "living_arrived": len(set(living.ids())),
        "living_twice": len(living.received) - len(set(living.ids())),
        **waits("delay_s", delays_s, unit_s=1.0),
        "delay_s_max": round(max(delays_s, default=0.0), 2),
        "attempts": farm.database.read(_attempts),
    }


def _attempts(conn: Connection) -> dict[str, int]:
    """Attempts by what came back; `None` is no answer."""
    status = tables.delivery_attempt.c.status
    rows = conn.execute(select(status, func.count()).group_by(status))
    return {str(row[0]): row[1] for row in rows}


def _cpu_s(process: "subprocess.Popen[bytes]") -> float:
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


def bars(figures: dict[str, object]) -> list[Bar]:
    """The rate, the living receiver's 95th percentile, and that nothing was lost or came twice."""
    count: Callable[[str], float] = lambda name: float(str(figures[name]))  # noqa: E731
    return [
        at_least("reached_per_s", count("reached_per_s"), RATE_REACHED * count("jobs_per_s")),
        at_most("living_p95_s", count("delay_s_p95"), P95_S),
        at_least("living_arrived", count("living_arrived"), count("living_expected")),
        at_most("living_twice", count("living_twice"), 0),
    ]


def main() -> None:
    """Measure, and print the figures with their bars; exit 1 when one of them is not met."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--per-s", type=float, default=50.0)
    arguments.add_argument("--seconds", type=float, default=200.0)
    arguments.add_argument("--dead", choices=["swallow", "refuse"], default="swallow")
    arguments.add_argument("--sqlite", action="store_true", help="not on PostgreSQL; not judged")
    arguments.add_argument("--quick", action="store_true", help="20 seconds")
    asked = arguments.parse_args()
    load = Load(asked.per_s, 20.0 if asked.quick else asked.seconds)
    figures = measure(load, dead=asked.dead, on_postgres=not asked.sqlite)
    judged = [] if asked.sqlite else bars(figures)
    emit(figures, judged, asked.json)
    sys.exit(0 if all(bar.ok for bar in judged) else 1)


if __name__ == "__main__":
    threading.stack_size(256 * 1024)
    main()
