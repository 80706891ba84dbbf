"""What the door remembers of the farm between two looks."""

from api.capacity import Load
from api.load import FRESH_S, LoadGauge
from shared.ledger.demand import LiveJob
from shared.tiers import Tier

JOB = LiveJob(Tier.STANDARD, 0.0, 120.0, 20.0, 0.0)


def test_a_job_accepted_here_counts_until_the_ledger_is_looked_at_again() -> None:
    clock = [0.0]
    gauge = LoadGauge(lambda: Load((), 5.0, clock[0]), clock=lambda: clock[0])
    assert gauge.now().jobs == ()
    gauge.add(JOB)
    assert gauge.now() == Load((JOB,), 5.0, 0.0)
    clock[0] += 2 * FRESH_S
    assert gauge.now() == Load((), 5.0, clock[0])


def test_while_no_node_is_alive_the_last_rate_counts() -> None:
    """given a busy farm / when its nodes are started anew / then its door does not open wide."""
    clock = [0.0]
    rates = [None, 5.0, None, None, 7.0]
    gauge = LoadGauge(lambda: Load((), rates.pop(0), clock[0]), clock=lambda: clock[0])
    seen = []
    while rates:
        seen.append(gauge.now().rate)
        clock[0] += 2 * FRESH_S
    assert seen == [None, 5.0, 5.0, 5.0, 7.0]
