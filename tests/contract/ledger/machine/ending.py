"""Whether a ledger is true, and whether whatever is left in it can be brought to a good end."""

from collections import Counter

from tests.contract.ledger.machine import finish, ground, moves, owners, schedulers, truths
from tests.contract.ledger.machine.held import Held


def check(held: Held) -> None:
    with ground.snapshot(held.database) as conn:
        faults = [*truths.faults(conn), *moves.faults(moves.read(conn))]
    assert not faults, "\n".join(faults)


def to_the_end(held: Held) -> None:
    """A fair farm finishes everything, tries again what has gaps, and lets go of it at last."""
    finish.finish(held)
    check(held)
    for job_id in held.jobs:
        owners.retry(held, job_id)
    check(held)
    finish.finish(held)
    finish.deliver(held)
    check(held)
    with ground.snapshot(held.database) as conn:
        ended = truths.Ledger(conn)
        happened = moves.read(conn)
    assert {job.state for job in ended.jobs} <= {"completed", "cancelled", "expired"}
    spoken = [m for m in happened if m.what == "segment" and m.was != m.now]
    commits = Counter(m.id for m in spoken if m.now == "done")
    losses = Counter(m.id for m in spoken if m.was == "done")
    first = {m.id: m.was for m in reversed(spoken)}
    assert all(count <= 1 + losses[segment] for segment, count in commits.items())
    for job in ended.jobs:
        if job.state == "completed":
            rows = [r for r in ended.segments[job.id] if r.kind == "speech"]
            assert len(rows) == job.segments_total
            for row in rows:
                segment = f"{job.id}.{row.number}"
                assert row.losses == losses[segment]
                # What was planned with audio that was there needs a commit only when that is lost.
                was_there = first.get(segment, "done") == "done"
                assert commits[segment] == losses[segment] + (not was_there)
    for job_id in held.jobs:
        owners.delete(held, job_id)
    schedulers.delete_objects(held)
    check(held)
    with ground.snapshot(held.database) as conn:
        assert not truths.Ledger(conn).objects
