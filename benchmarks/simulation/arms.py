"""The policies that are compared, each with the farm set up as suits it best. Runs nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from benchmarks.simulation.device import SLOTS
from benchmarks.simulation.farm import Dispatch, Layout
from benchmarks.simulation.ours import Ours
from benchmarks.simulation.rivals import Fifo, StrictPriority, WeightedFair
from shared.settings import Settings
from shared.tiers import Tier
from worker.batching.policy import DEFAULT_LIMITS, PATIENCE_S, Policy, TierLimits

WINDOW_SLOTS = float(Settings.model_fields["window_factor"].default)
FULL_BATCHES = {tier.value: TierLimits(SLOTS, DEFAULT_LIMITS[tier].max_wait_s) for tier in Tier}


@dataclass(frozen=True, slots=True)
class Arm:
    """A policy and the farm around it. `patience_s`: after it hosts let anything go before rush."""

    dispatch: Callable[[], Dispatch]
    limits: Mapping[str, TierLimits]
    patience_s: float = inf
    window_slots: float = WINDOW_SLOTS
    rush_window_slots: float = WINDOW_SLOTS
    low_water: float = 0.5

    def layout(self, gpus: int) -> Layout:
        """The farm for so many devices."""
        return Layout(
            gpus=gpus,
            window_slots=self.window_slots,
            rush_window_slots=self.rush_window_slots,
            low_water=self.low_water,
        )

    def policy(self) -> Policy:
        """What its hosts decide batches by."""
        return Policy(slots=SLOTS, limits=self.limits, patience_s=self.patience_s)


OURS = "ours"
# By the tiers' default settings: batches of four for rush, hosts that order by due time.
UNTUNED = "ours_untuned"
RIVALS: dict[str, Arm] = {
    "fifo": Arm(Fifo, FULL_BATCHES),
    "strict_priority": Arm(StrictPriority, FULL_BATCHES),
    "weighted_fair": Arm(WeightedFair, FULL_BATCHES),
}
ARMS: dict[str, Arm] = {
    OURS: Arm(
        lambda: Ours(hosts_keep_order=True),
        FULL_BATCHES,
        patience_s=PATIENCE_S,
        window_slots=2.5,
        rush_window_slots=2.0,
        low_water=0.75,
    ),
    UNTUNED: Arm(Ours, DEFAULT_LIMITS, patience_s=PATIENCE_S),
    **RIVALS,
}
