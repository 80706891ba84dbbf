"""How long one filling of a window takes with 10,000 jobs waiting, on real databases.

And how many small transactions, such as a claim or a commit, they take in a second.

`cpu_ms` is this process's own: all there is with SQLite, all but the server's with PostgreSQL. On a
busy machine it says more than the time that passes.

Run: python -m benchmarks.simulation.feeding --json -
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles

import numpy as np
from sqlalchemy import Connection, bindparam, text, update

from benchmarks.report import at_most, emit, parser
from shared.ledger import feeding
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.database import Database, open_database
from shared.ledger.migrate import migrate
from shared.scheduling.pools import SHARED_POOL
from shared.segments import SegmentState
from shared.tiers import Tier
from tests.factories import waiting_job, waiting_segment
from tests.servers import PostgresServer

JOBS = 10_000
FLOOD_JOBS = 5_000  # of one tenant, a sentence each
TENANTS = 300
ONE_GPU, HUNDRED_GPUS = 12, 600  # what a window has room for when it is filled up
LIMIT_MS = 20.0


def main() -> None:
    """Fill windows and report."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--fills", type=int, default=60)
    args = options.parse_args()
    figures: dict[str, object] = {"jobs": JOBS, "tenants": TENANTS}
    bars = []
    for name, database in databases():
        migrate(database)
        database.transact(_load)
        figures[f"{name}_transactions_per_s"] = round(_transactions_per_s(database))
        for room in (ONE_GPU, HUNDRED_GPUS):
            cpu_began_s = time.process_time()
            took_ms = [_timed_ms(database, room) for _ in range(args.fills)]
            cpu_ms = (time.process_time() - cpu_began_s) * 1_000 / args.fills
            p50_ms, p95_ms = median(took_ms), quantiles(took_ms, n=20)[-1]
            key = f"{name}_room_{room}"
            figures[key] = {
                "p50_ms": round(p50_ms, 2),
                "p95_ms": round(p95_ms, 2),
                "cpu_ms": round(cpu_ms, 2),
                "ms_per_segment": round(p50_ms / room, 4),
            }
            if room == ONE_GPU:
                bars.append(at_most(f"{key}_p50_ms", round(p50_ms, 2), LIMIT_MS))
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


def databases() -> Iterator[tuple[str, Database]]:
    """SQLite in a file, then PostgreSQL, each in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url = f"sqlite:///{folder}/feed.db"
        yield "sqlite", stack.enter_context(open_database(url))
        with _postgres() as server_url:
            yield "postgresql", stack.enter_context(open_database(server_url))
            stack.close()


@contextmanager
def _postgres() -> Iterator[str]:
    # PostgreSQL refuses to run as root: the folder has to be one that its own user can enter.
    with tempfile.TemporaryDirectory(prefix="voxfarm-feed-") as folder:
        server = PostgresServer(Path(folder)).start()
        try:
            yield server.url
        finally:
            server.stop()


def _timed_ms(database: Database, room: int) -> float:
    began_s = time.perf_counter()
    sent = database.transact(lambda conn: len(feeding.fill(conn, SHARED_POOL, room)))
    if sent != room:
        raise RuntimeError(f"{sent} segments were sent where there was room for {room}")
    return (time.perf_counter() - began_s) * 1_000


def _transactions_per_s(database: Database, *, seconds: float = 3.0) -> float:
    """Claims of one row each, durable, from eight threads."""
    stop_at = time.monotonic() + seconds
    c = t.segment.c
    claim = (
        update(t.segment)
        .where(c.job_id == bindparam("the_job"), c.index == 0)
        .values(dispatch_no=c.dispatch_no + 1)
    )

    def work(first: int) -> int:
        done = 0
        while time.monotonic() < stop_at:
            job_id = _job_id((first + 8 * done) % JOBS)
            database.transact(lambda conn: conn.execute(claim, {"the_job": job_id}))  # noqa: B023
            done += 1
        return done

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(work, range(8))) / seconds


def _job_id(number: int) -> str:
    return f"{number:026d}"


def _load(conn: Connection) -> None:
    """Waiting jobs of every kind: a flood, articles, books; some behind, some late."""
    rng = np.random.default_rng(0)
    now_s = read_clock(conn)
    jobs, segments, shares = [], [], set()
    for n in range(JOBS):
        flood = n < FLOOD_JOBS
        tier = Tier.STANDARD if flood or n % 2 else Tier.BULK
        tenant = "flood" if flood else f"t{int(rng.integers(TENANTS)):03d}"
        count = 1 if flood else int(rng.integers(1, 60))
        begun = 0 if flood else count // 2
        start = now_s + float(rng.uniform(-600, 7_200))
        end = start + float(rng.uniform(60, 7_200))
        jobs.append(
            waiting_job(
                _job_id(n),
                tenant=tenant,
                tier=tier,
                due_at=end,
                head_due_at=start + begun * (end - start) / count,
                turn_s=0.0 if flood else float(rng.uniform(0, 60)),
            )
        )
        shares.add((tier, tenant))
        segments += [
            waiting_segment(
                _job_id(n),
                i,
                tier=tier,
                due_at=start + i * (end - start) / count,
                chars=int(rng.integers(20, 180)),
                text="x" * 90,
                state=SegmentState.DONE if i < begun else SegmentState.PENDING,
            )
            for i in range(count)
        ]
    conn.execute(t.job.insert(), jobs)
    conn.execute(t.segment.insert(), segments)
    conn.execute(
        t.tenant_share.insert(),
        [
            {"tier": tier, "tenant": tenant, "turn_s": float(rng.uniform(0, 60)), "clock_s": 0.0}
            for tier, tenant in sorted(shares)
        ],
    )
    if conn.dialect.name == "postgresql":
        conn.execute(text("ANALYZE"))


if __name__ == "__main__":
    main()
