"""What owners of jobs do, at any moment: submit, pause, resume, cancel, retry, delete."""

from contextlib import suppress

from sqlalchemy import Connection

from shared.errors import ConflictError
from shared.forgetting import forget
from shared.jobs import Fallback
from shared.ledger import expiry, jobs, pausing, retrying
from shared.tiers import Tier
from shared.webhooks import SELECTABLE_EVENTS
from tests.contract.ledger import hooks
from tests.contract.ledger.machine.held import TENANTS, Book, Held
from tests.contract.ledger.story import TARGET
from tests.factories import new_job

FALLBACK = Fallback(engine="second", version="2", backend="numpy", voice="b")
KEEP_S = 3_600.0


def want_news(held: Held) -> None:
    """Every tenant wants to be told of everything that becomes of its jobs."""
    for tenant in TENANTS:
        hooks.register(held.database, events=SELECTABLE_EVENTS, tenant=tenant)


def submit(held: Held, book: Book, *, fallback: bool, on_error: str) -> None:
    new = new_job(
        tenant=book.tenant,
        on_error=on_error,
        fallback=FALLBACK.model_dump() if fallback else None,
    )
    accepted = held.database.transact(lambda conn: jobs.accept(conn, new, TARGET))
    held.books[accepted.job_id] = book


def pause(held: Held, job_id: str) -> None:
    def work(conn: Connection) -> None:
        held.database.lock_tier(conn, Tier.STANDARD)
        pausing.pause(conn, held.books[job_id].tenant, job_id)

    with suppress(ConflictError):  # nothing is left to pause
        held.database.transact(work)


def resume(held: Held, job_id: str) -> None:
    held.database.transact(lambda conn: pausing.resume(conn, held.books[job_id].tenant, job_id))


def cancel(held: Held, job_id: str) -> None:
    held.database.transact(lambda conn: jobs.cancel(conn, held.books[job_id].tenant, job_id))


def retry(held: Held, job_id: str) -> None:
    with suppress(ConflictError):  # it lacks nothing
        held.database.transact(lambda conn: retrying.retry(conn, held.books[job_id].tenant, job_id))


def delete(held: Held, job_id: str) -> None:
    begin_to_delete(held, job_id)
    forget(held.database, job_id, reuse_s=KEEP_S)


def begin_to_delete(held: Held, job_id: str) -> None:
    """Delete a job and die before its segments are forgotten: a scheduler sees to that."""
    tenant = held.books[job_id].tenant
    held.database.transact(lambda conn: expiry.delete_now(conn, tenant, job_id))
