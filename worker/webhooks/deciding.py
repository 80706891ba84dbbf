"""What follows from an attempt: delivered, tried again and when, or given up. Pure."""

from dataclasses import dataclass

from shared.webhooks import DeliveryState, Outcome, Verdict

GONE = 410
PATIENT_FAILURES = 5  # in a row, before a webhook is left alone
_JITTER = 0.1
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class RetryRules:
    """`waits_s[n]` comes before try n + 1, so there are as many tries as waits."""

    waits_s: tuple[float, ...]
    retry_after_max_s: float
    hold_s: float
    hold_max_s: float
    unsent_wait_s: float = 30.0


def decide(
    rules: RetryRules, outcome: Outcome, *, tries: int, failures: int, draw: float
) -> Verdict:
    """The verdict over an attempt.

    `tries` of the delivery and `failures` of its webhook in a row count this one; `draw` in
    [0, 1) spreads retries, so that what failed together does not come back together.
    """
    spread = 1 + _JITTER * (2 * draw - 1)
    if not outcome.counts:
        wait_s = rules.unsent_wait_s * spread
        return Verdict(DeliveryState.PENDING, delay_s=wait_s, hold_s=wait_s)
    if outcome.delivered:
        return Verdict(DeliveryState.DELIVERED)
    if outcome.status == GONE:
        return Verdict(DeliveryState.FAILED, disable=True)
    asked_s = min(outcome.retry_after_s or 0.0, rules.retry_after_max_s)
    hold_s = max(asked_s, _hold_s(rules, failures) * spread)
    if tries >= len(rules.waits_s):
        return Verdict(DeliveryState.FAILED, hold_s=hold_s)
    delay_s = max(asked_s, rules.waits_s[tries] * spread)
    return Verdict(DeliveryState.PENDING, delay_s=delay_s, hold_s=hold_s)


def _hold_s(rules: RetryRules, failures: int) -> float:
    if failures < PATIENT_FAILURES:
        return 0.0
    doublings = min(failures - PATIENT_FAILURES, _MOST_DOUBLINGS)
    return min(rules.hold_max_s, rules.hold_s * 2.0**doublings)
