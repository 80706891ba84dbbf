"""How a worker comes to lose a claim, and what it says when it wakes up again."""

from shared.ledger.segments import Claim
from tests.contract.ledger.machine import nodes, owners, schedulers
from tests.contract.ledger.machine.held import Held


def lose_lease(held: Held, claimed: Claim) -> None:
    schedulers.let_lease_run_out(held, claimed)
    schedulers.take_back_expired(held)


def die_alone(held: Held, claimed: Claim) -> None:
    """Its consumer dies, or seems to, while it is the only sentence there."""
    nodes.stand_alone(held, claimed, alone=True)
    lose_lease(held, claimed)


def give_back(held: Held, claimed: Claim) -> None:
    nodes.release(held, claimed, delay_s=0.0)


def pause_and_resume(held: Held, claimed: Claim) -> None:
    owners.pause(held, claimed.job_id)
    nodes.put_back(held, claimed)
    owners.resume(held, claimed.job_id)


def commit_alone(held: Held, claimed: Claim) -> None:
    nodes.commit(held, [claimed])


def crash_again(held: Held, claimed: Claim) -> None:
    for _ in range(nodes.MOST_CRASHES):
        nodes.crash(held, claimed, alone=True)


LOSSES = (lose_lease, die_alone, give_back, pause_and_resume, crash_again)
WORDS = (commit_alone, commit_alone, crash_again, give_back, nodes.renew)
