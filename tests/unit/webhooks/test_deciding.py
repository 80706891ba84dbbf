"""What follows from an attempt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.settings import Settings
from shared.webhooks import DeliveryState, Outcome
from worker.webhooks.courier import rules_of
from worker.webhooks.deciding import PATIENT_FAILURES, decide

RULES = rules_of(Settings())


def bad(status: int | None = 500, retry_after_s: float | None = None) -> Outcome:
    return Outcome(status, None if status else "no connection", 0.1, retry_after_s)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_every_2xx_is_a_delivery(status: int) -> None:
    verdict = decide(RULES, bad(status), tries=1, failures=0, draw=0.5)
    assert verdict.state is DeliveryState.DELIVERED


@pytest.mark.parametrize("status", [None, 100, 199, 300, 301, 304, 308, 400, 404, 429, 500, 503])
def test_everything_else_is_tried_again_by_the_schedule(status: int | None) -> None:
    waits = [
        decide(RULES, bad(status), tries=n, failures=1, draw=0.5).delay_s for n in range(1, 10)
    ]
    assert waits == [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
    last = decide(RULES, bad(status), tries=10, failures=1, draw=0.5)
    assert last.state is DeliveryState.FAILED


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 9))
def test_retries_are_spread_by_a_tenth_and_no_more(draw: float, tries: int) -> None:
    delay_s = decide(RULES, bad(), tries=tries, failures=1, draw=draw).delay_s
    wait_s = RULES.waits_s[tries]
    assert 0.9 * wait_s <= delay_s <= 1.1 * wait_s


def test_a_receiver_that_is_gone_is_not_asked_again() -> None:
    verdict = decide(RULES, bad(410), tries=1, failures=1, draw=0.5)
    assert (verdict.state, verdict.disable) == (DeliveryState.FAILED, True)


def test_retry_after_holds_the_whole_webhook_but_not_for_ever() -> None:
    asked = decide(RULES, bad(503, 60.0), tries=1, failures=1, draw=0.5)
    assert (asked.delay_s, asked.hold_s) == (60, 60)
    less = decide(RULES, bad(503, 1.0), tries=2, failures=1, draw=0.5)
    assert (less.delay_s, less.hold_s) == (300, 1)
    for much in (1e9, float("inf")):
        ages = decide(RULES, bad(429, much), tries=1, failures=1, draw=0.5)
        assert (ages.delay_s, ages.hold_s) == (3_600, 3_600)


def test_a_webhook_that_fails_in_a_row_is_left_alone_for_longer_and_longer() -> None:
    holds = [decide(RULES, bad(), tries=1, failures=n, draw=0.5).hold_s for n in range(1, 14)]
    assert holds[: PATIENT_FAILURES - 1] == [0, 0, 0, 0]
    assert holds[PATIENT_FAILURES - 1 :] == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert decide(RULES, bad(), tries=1, failures=10**9, draw=0.5).hold_s == 300


def test_what_was_never_sent_costs_no_try() -> None:
    never = Outcome(None, "the secrets differ", 0.0, counts=False)
    verdict = decide(RULES, never, tries=10, failures=0, draw=0.5)
    assert verdict.state is DeliveryState.PENDING
    assert verdict.delay_s == verdict.hold_s > 0
