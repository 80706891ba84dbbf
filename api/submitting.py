"""Accepting a job: from the bytes of a request to a committed row, in one thread, in one go.

Nothing is written unless everything is right, and everything is written in one transaction.
"""

from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from api.auth import Caller
from api.capacity import Load, check_quota, check_room, check_size, check_tier, demand_of
from api.deps import Deps
from api.submission import read_submission
from api.views.job import JobView
from shared.crashpoints import crash_point
from shared.ledger import demand, jobs, nodes, replays
from shared.ledger.demand import LiveJob
from shared.ledger.jobs import Accepted, JobRecord, NewJob


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job as accepted, the step to send, and whether an earlier request had made it."""

    job: JobView
    step_id: str | None
    replayed: bool


def accept(deps: Deps, caller: Caller, body: bytes, idempotency_key: str | None) -> Receipt:
    """Read, check and write a submission. Raises UsageError, ConflictError, TransientError."""
    asked = read_submission(body)
    tenant = caller.tenant
    accepted = new = None
    if idempotency_key is not None:
        # Before admission: what was accepted stays so, even if its engine or its room has gone.
        digest = asked.digest
        earlier = deps.read(lambda conn: replays.find(conn, tenant, idempotency_key, digest))
        accepted = None if earlier is None else Accepted(earlier, None, replayed=True)
    if accepted is None:
        check_tier(asked.tier, caller.tiers)
        engines = [record.info for record in deps.read(nodes.engines)]
        new = deps.admission.admit(asked, engines, tenant=tenant, idempotency_key=idempotency_key)
        check_size(demand_of(new), caller.quota)
        load = deps.load.now()
        check_room(demand_of(new), load, deps.admission.settings)
        accepted = _write(deps, caller, new, load)
        crash_point("api.accepted")
    job_id = accepted.job_id
    record = deps.read(lambda conn: jobs.get(conn, tenant, job_id))
    if new is not None and not accepted.replayed:
        deps.load.add(_live(new, record))
    return Receipt(JobView.of(record), accepted.step_id, accepted.replayed)


def _write(deps: Deps, caller: Caller, new: NewJob, load: Load) -> Accepted:
    target = deps.admission.settings.tiers[new.spec.tier]
    mark_of = deps.signing_secrets().mark if new.webhook is not None else None

    def write(conn: Connection) -> Accepted:
        if caller.quota.is_limit:
            demand.lock_tenant(conn, caller.tenant)
            if not _is_replay(conn, new):
                backlog = demand.tenant_backlog(conn, caller.tenant)
                check_quota(demand_of(new), backlog, caller.quota, load.rate)
        crash_point("api.writing")
        written = jobs.accept(conn, new, target, mark_of)
        crash_point("api.written")
        return written

    try:
        return deps.transact(write)
    except IntegrityError as error:
        if not replays.is_race(error):
            raise
        return deps.transact(write)


def _is_replay(conn: Connection, new: NewJob) -> bool:
    """Whether another thread has written this very request since it was looked for."""
    if new.idempotency_key is None:
        return False
    found = replays.find(conn, new.tenant, new.idempotency_key, new.request_sha256)
    return found is not None


def _live(new: NewJob, record: JobRecord) -> LiveJob:
    return LiveJob(new.spec.tier, record.created_at, record.due_at, new.expected_audio_s, done=0.0)
