"""A fair farm: whatever is left in a ledger is brought to its end, and nobody dies any more."""

from sqlalchemy import text

from tests.contract.ledger.machine import nodes, owners, postmen, readers, schedulers, step_workers
from tests.contract.ledger.machine.held import Held

_ROUNDS = 30  # more than any of these small jobs needs


def finish(held: Held) -> None:
    """Resume, speak, assemble and tell, until every job has ended."""
    for _ in range(_ROUNDS):
        if not _alive(held):
            return
        _round(held)
    raise AssertionError(f"these jobs do not come to their end: {_alive(held)}")


def _round(held: Held) -> None:
    for job_id in held.jobs:
        owners.resume(held, job_id)
    _let_all_go(held)
    spoken, planned, made = len(held.claims), len(held.plans), len(held.assemblies)
    sent, told = len(held.messages), len(held.step_messages)
    schedulers.send_steps(held, 100)
    schedulers.fill(held, 100)
    for message in held.messages[sent:]:
        nodes.claim(held, message)
    for claimed in held.claims[spoken:]:
        nodes.commit(held, [claimed])
    for step in held.step_messages[told:]:
        step_workers.claim(held, step)
    for plan in held.plans[planned:]:
        for _ in range(_ROUNDS):
            step_workers.go_on(held, plan)
    for assembly in held.assemblies[made:]:
        step_workers.make(held, assembly)
        step_workers.commit(held, assembly, reuse=True)


def _let_all_go(held: Held) -> None:
    """Time passes: every holder is given up, and the broker has lost everything."""
    _let_leases_run_out(held)
    schedulers.take_back_expired(held)
    schedulers.take_back_lost(held, lambda messages: messages)
    schedulers.let_waits_pass(held)


def _let_leases_run_out(held: Held) -> None:
    def work(conn: object) -> None:
        for table in ("segment", "step", "delivery"):
            conn.execute(text(f"UPDATE {table} SET lease_until = 1.0 WHERE state = 'leased'"))  # type: ignore[attr-defined]  # noqa: S608

    held.database.transact(work)


def deliver(held: Held) -> None:
    """Bring every event to its webhook, once all of those are enabled."""
    readers.enable_all(held)
    for _ in range(_ROUNDS):
        _let_leases_run_out(held)
        postmen.take_back(held)
        schedulers.let_waits_pass(held)
        before = len(held.letters)
        postmen.hand_out(held)
        if len(held.letters) == before:
            break
        for letter in held.letters[before:]:
            postmen.claim(held, letter)
        for claimed in held.deliveries:
            postmen.settle(held, claimed, 200)
    left = held.database.read(
        lambda conn: conn.execute(
            text("SELECT state FROM delivery WHERE state IN ('pending', 'dispatched', 'leased')")
        ).all()
    )
    assert not left, "events did not arrive"


def _alive(held: Held) -> list[tuple[str, str]]:
    rows = held.database.read(
        lambda conn: conn.execute(text("SELECT id, state FROM job WHERE ended_at IS NULL")).all()
    )
    return [tuple(row) for row in rows]  # type: ignore[misc]
