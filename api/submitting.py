"""Accepting a job: from the bytes of a request to a committed row, in one thread, in one go.

Nothing is written unless everything is right, and everything is written in one transaction.
"""

from dataclasses import dataclass

from sqlalchemy.exc import IntegrityError

from api.deps import Deps
from api.submission import read_submission
from api.views.job import JobView
from shared.crashpoints import crash_point
from shared.ledger import jobs, nodes
from shared.ledger.jobs import Accepted, NewJob


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job as accepted, the step to send, and whether an earlier request had made it."""

    job: JobView
    step_id: str | None
    replayed: bool


def accept(deps: Deps, tenant: str, body: bytes, idempotency_key: str | None) -> Receipt:
    """Read, check and write a submission. Raises UsageError, ConflictError, TransientError."""
    asked = read_submission(body)
    accepted = None
    if idempotency_key is not None:
        # Before admission: what was accepted stays so, even if its engine has gone since.
        digest = asked.digest
        accepted = deps.read(lambda conn: jobs.find_replay(conn, tenant, idempotency_key, digest))
    if accepted is None:
        engines = [record.info for record in deps.read(nodes.engines)]
        new = deps.admission.admit(asked, engines, tenant=tenant, idempotency_key=idempotency_key)
        accepted = _write(deps, new)
        crash_point("api.accepted")
    job_id = accepted.job_id
    record = deps.read(lambda conn: jobs.get(conn, tenant, job_id))
    return Receipt(JobView.of(record), accepted.step_id, accepted.replayed)


def _write(deps: Deps, new: NewJob) -> Accepted:
    target = deps.admission.settings.tiers[new.spec.tier]
    try:
        return deps.transact(lambda conn: jobs.accept(conn, new, target))
    except IntegrityError as error:
        if not jobs.is_key_race(error):
            raise
        return deps.transact(lambda conn: jobs.accept(conn, new, target))
