"""The two storms: the whole one of `scripts/chaos`, and a short one for every run of the tests."""

from collections.abc import Collection

from tests.chaos.storm.plan import Squall, faults, storm
from tests.chaos.storm.run import Size

FULL = Size(segments=2_000, sentences_a_book=90, lease_s=5.0, delay_s=0.1)
SHORT = Size(segments=250, sentences_a_book=60, lease_s=3.0, delay_s=0.05, poisons=("[[crash]]",))
AWAY_S, AWAY_SHORTLY_S = 60.0, 4.0
OF_THE_SHORT_STORM = (
    "kill engine host",
    "kill cpu worker",
    "freeze consumer",
    "terminate node",
    "empty restart of redis",
    "stop store",
    "send messages twice",
    "reorder messages",
    "refuse webhooks",
    "step database clock",
)


def whole_storm(seed: int, offers: Collection[str]) -> list[Squall]:
    """Every fault that the ground offers, once."""
    every = faults(lease_s=FULL.lease_s, away_s=AWAY_S)
    return storm(seed, every, offers=offers)


def short_storm(seed: int, offers: Collection[str]) -> list[Squall]:
    """The faults that take little time and hit most."""
    every = faults(lease_s=SHORT.lease_s, away_s=AWAY_SHORTLY_S)
    return storm(seed, [f for f in every if f.name in OF_THE_SHORT_STORM], offers=offers)
