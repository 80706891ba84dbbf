"""How long one filling of a window takes with 10,000 jobs waiting, on real databases.

And how many small transactions, such as a claim or a commit, they take in a second.

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
from sqlalchemy import Connection, text

from benchmarks.report import at_most, emit, parser
from benchmarks.simulation.feed_sql import SCHEMA, fill
from shared.ledger.database import Database, open_database
from shared.scheduling.pools import SHARED_POOL
from shared.tiers import Tier
from tests.servers import PostgresServer

JOBS = 10_000
FLOOD_JOBS = 5_000  # of one tenant, a sentence each
TENANTS = 300
NOW_S = 1_000_000.0
CHARS_PER_S = 15.0
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
        database.transact(_load)
        figures[f"{name}_transactions_per_s"] = round(_transactions_per_s(database))
        for room in (ONE_GPU, HUNDRED_GPUS):
            took_ms = [_timed_ms(database, room) for _ in range(args.fills)]
            p50_ms, p95_ms = median(took_ms), quantiles(took_ms, n=20)[-1]
            key = f"{name}_room_{room}"
            figures[key] = {
                "p50_ms": round(p50_ms, 2),
                "p95_ms": round(p95_ms, 2),
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
    sent = database.transact(
        lambda conn: fill(conn, SHARED_POOL, room=room, now_s=NOW_S, chars_per_s=CHARS_PER_S)
    )
    if sent != room:
        raise RuntimeError(f"{sent} segments were sent where there was room for {room}")
    return (time.perf_counter() - began_s) * 1_000


def _transactions_per_s(database: Database, *, seconds: float = 3.0) -> float:
    """Claims of one row each, durable, from eight threads."""
    stop_at = time.monotonic() + seconds
    claim = text(
        'UPDATE segment SET dispatch_no = dispatch_no + 1 WHERE job_id = :job_id AND "index" = 0'
    )

    def work(first: int) -> int:
        done = 0
        while time.monotonic() < stop_at:
            job_id = f"{(first + 8 * done) % JOBS:026d}"
            database.transact(lambda conn: conn.execute(claim, {"job_id": job_id}))  # noqa: B023
            done += 1
        return done

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(work, range(8))) / seconds


def _load(conn: Connection) -> None:
    """Waiting jobs of every kind: a flood, articles, books; some behind, some late."""
    for statement in SCHEMA.split(";"):
        if statement.strip():
            conn.execute(text(statement))
    rng = np.random.default_rng(0)
    jobs, segments, shares = [], [], set()
    for n in range(JOBS):
        flood = n < FLOOD_JOBS
        tier = Tier.STANDARD if flood or n % 2 else Tier.BULK
        tenant = "flood" if flood else f"t{int(rng.integers(TENANTS)):03d}"
        count = 1 if flood else int(rng.integers(1, 60))
        begun = 0 if flood else count // 2
        start = NOW_S + float(rng.uniform(-600, 7_200))
        end = start + float(rng.uniform(60, 7_200))
        head = start + begun * (end - start) / count
        job_id = f"{n:026d}"
        jobs.append(
            {
                "id": job_id, "tenant": tenant, "tier": tier, "due_at": end, "head_due_at": head,
                "turn_s": 0.0 if flood else float(rng.uniform(0, 60)),
            }
        )  # fmt: skip
        shares.add((tier, tenant))
        segments += [
            {
                "job_id": job_id, "index": i, "due_at": start + i * (end - start) / count,
                "chars": int(rng.integers(20, 180)), "text": "x" * 90,
                "state": "done" if i < begun else "pending",
            }
            for i in range(count)
        ]  # fmt: skip
    conn.execute(
        text(
            "INSERT INTO job (id, tenant, tier, due_at, head_due_at, turn_s)"
            " VALUES (:id, :tenant, :tier, :due_at, :head_due_at, :turn_s)"
        ),
        jobs,
    )
    conn.execute(
        text(
            'INSERT INTO segment (job_id, "index", state, due_at, chars, text)'
            " VALUES (:job_id, :index, :state, :due_at, :chars, :text)"
        ),
        segments,
    )
    conn.execute(
        text("INSERT INTO tenant_share VALUES (:tier, :tenant, true, :turn_s, 0.0)"),
        [
            {"tier": tier, "tenant": tenant, "turn_s": float(rng.uniform(0, 60))}
            for tier, tenant in sorted(shares)
        ],
    )
    if conn.dialect.name == "postgresql":
        conn.execute(text("ANALYZE"))


if __name__ == "__main__":
    main()
