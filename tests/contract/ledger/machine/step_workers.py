"""What cpu workers do with steps, in any order and however late: plan, assemble, give up.

Each function is one transaction of a worker, so that another's may come between any two.
"""

import hashlib
from contextlib import suppress

from sqlalchemy import Connection, text

from shared import object_keys
from shared.errors import LedgerBusyError
from shared.jobs import JobState
from shared.ledger import deliverables, encodings, healing, jobs, plans, segment_records, steps
from shared.ledger.deliverables import Deliverable
from shared.ledger.steps import StepClaim
from shared.ledger.tables import WHOLE_JOB
from shared.messages import StepMessage
from shared.segments import SegmentState
from shared.steps import StepKind
from shared.tiers import Tier
from tests.contract.ledger.machine.held import AssemblyRun, Held, PlanRun
from tests.contract.ledger.machine.nodes import LEASE_S

MOST_LOSSES = 3
STARTED, OPENED = 1, 2  # stages of a plan; the chunks come behind them


def claim(held: Held, message: StepMessage) -> None:
    claimed = held.database.transact(
        lambda conn: steps.claim(conn, message.step_id, message.dispatch_no, lease_s=LEASE_S)
    )
    if claimed is None:
        return
    if claimed.kind is StepKind.PLAN:
        held.plans.append(PlanRun(claimed))
    else:
        held.assemblies.append(AssemblyRun(claimed))


def go_on(held: Held, run: PlanRun) -> None:
    """The next transaction of a plan. Who has lost the token stops, and would try in vain."""
    with run.one_thread:
        _go_on(held, run)


def _go_on(held: Held, run: PlanRun) -> None:
    database, claimed = held.database, run.claim
    book = held.books[claimed.job_id]
    if run.stage < STARTED:
        database.transact(lambda conn: plans.start_planning(conn, claimed.job_id))
    elif run.stage < OPENED:
        if not database.transact(
            lambda conn: plans.open_rendering(
                conn, claimed, book.parts(), skipped=0, lease_s=LEASE_S
            )
        ):
            return
        written = database.read(lambda conn: plans.written(conn, claimed.job_id))
        run.chunks = list(plans.chunks(book.rows()[written:], book.chunk))
    elif run.stage < OPENED + len(run.chunks):
        chunk = run.chunks[run.stage - OPENED]
        reuse_of = book.tenant if book.reuse else None
        if not database.transact(
            lambda conn: plans.write_chunk(
                conn, claimed, Tier.STANDARD, chunk, lease_s=LEASE_S, reuse_of=reuse_of
            )
        ):
            return
    else:
        database.transact(lambda conn: plans.finish_plan(conn, claimed))
        return
    run.stage += 1


def renew(held: Held, claimed: StepClaim) -> None:
    held.database.transact(lambda conn: steps.renew(conn, claimed, lease_s=LEASE_S))


def give_back(held: Held, claimed: StepClaim, *, burn: bool, delay_s: float) -> None:
    held.database.transact(
        lambda conn: steps.release(conn, claimed, delay_s=delay_s, error="store away", burn=burn)
    )


def fail(held: Held, claimed: StepClaim) -> None:
    """Give a step up for good, and its job with it."""

    def work(conn: Connection) -> None:
        if steps.fail(conn, claimed, "it failed too often"):
            jobs.end(conn, claimed.job_id, JobState.FAILED, code=f"{claimed.kind}-failed")

    held.database.transact(work)


def make(held: Held, run: AssemblyRun) -> None:
    """Read what a file is made of, and make it; nobody knows of it yet."""
    claimed = run.claim
    rows = held.database.read(
        lambda conn: conn.execute(
            text(
                'SELECT part, "index", sha256 FROM segment WHERE job_id = :job'
                " AND state = 'done' AND kind = 'speech' ORDER BY \"index\""
            ),
            {"job": claimed.job_id},
        ).all()
    )
    whole = claimed.part == WHOLE_JOB
    heard = [row for row in rows if whole or row.part == claimed.part]
    kind = "manifest" if whole else "audio"
    name = f"{kind}{claimed.part}"
    tenant = held.books[claimed.job_id].tenant
    sha256 = content_of([row.sha256 for row in heard])
    run.part_key = f"{tenant} {sha256}"[:64]
    run.file = Deliverable(
        part=claimed.part,
        kind=kind,
        name=name,
        format="flac",
        content_type="audio/flac",
        object_key=object_keys.deliverable(tenant, claimed.job_id, claimed.id, claimed.token, name),
        size_bytes=10,
        sha256=sha256,
        samples=1_000,
        rate_hz=24_000,
        timeline=[[row.index, place, place + 1] for place, row in enumerate(heard)],
    )


def find_lost(held: Held, run: AssemblyRun, every: int) -> None:
    """Find some of a part's audio lost when it is to be put together: it is spoken again."""
    claimed = run.claim
    if claimed.part == WHOLE_JOB:
        return

    def work(conn: Connection) -> None:
        rows = segment_records.page(conn, claimed.job_id, limit=100, part=claimed.part)
        lost = [row for row in rows if row.state == SegmentState.DONE and row.object_key][::every]
        if lost:
            healing.reopen(conn, claimed, lost, most_losses=MOST_LOSSES)

    with suppress(LedgerBusyError):  # somebody was faster
        held.database.transact(work)


def content_of(heard: list[str]) -> str:
    """The hash of a file in which these are heard, one after the other."""
    return hashlib.sha256(" ".join(heard).encode()).hexdigest()


def commit(held: Held, run: AssemblyRun, *, reuse: bool) -> None:
    """Hand in what was made; or, with `reuse`, what another job's assembly has made before."""
    claimed, file, key = run.claim, run.file, run.part_key
    if file is None or key is None:
        make(held, run)
        return
    if claimed.part == WHOLE_JOB:
        held.database.transact(lambda conn: deliverables.commit_job(conn, claimed, file))
        return
    found = held.database.read(
        lambda conn: encodings.find(conn, held.books[claimed.job_id].tenant, key)
    )
    if found is not None and reuse:
        held.database.transact(
            lambda conn: deliverables.reuse_part(
                conn, claimed, found, name=file.name, format_="flac", content_type="audio/flac"
            )
        )
        return
    held.database.transact(lambda conn: deliverables.commit_part(conn, claimed, file, part_key=key))
