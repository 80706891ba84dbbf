"""The policies that are compared, each with the farm set up as suits it best. Runs nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from benchmarks.simulation.device import DEVICE, FULL_BATCH_S, SLOTS, Device
from benchmarks.simulation.farm import Dispatch, Layout
from benchmarks.simulation.ours import Ours
from benchmarks.simulation.rivals import Fifo, StrictPriority, WeightedFair
from shared.dispatch import LOW_WATER
from shared.scheduling.depth import threads
from shared.settings import Settings
from shared.tiers import Tier
from worker.batching.given import LATE_SHARE
from worker.batching.policy import DEFAULT_LIMITS, PATIENCE_S, Policy, TierLimits

SHIPPED_WINDOW_SLOTS = float(Settings.model_fields["window_factor"].default)
_SETTLING = int(Settings.model_fields["commit_most"].default)
SHIPPED_THREADS_SLOTS = threads(SLOTS, rush=False, pads=False, settling=0) / SLOTS
FULL_BATCHES = {tier.value: TierLimits(SLOTS, DEFAULT_LIMITS[tier].max_wait_s) for tier in Tier}


@dataclass(frozen=True, slots=True)
class Arm:
    """A policy and the farm around it.

    The defaults are the best of those tried on a device whose batches all take the same time, for
    us and for the rivals: shallow windows, so that what is sent later does not wait behind them.
    `patience_s`: after it hosts let anything go before rush; `late_share`: what they keep for late
    work.
    """

    dispatch: Callable[[], Dispatch]
    limits: Mapping[str, TierLimits] = field(default_factory=lambda: FULL_BATCHES)
    patience_s: float = inf
    late_share: float = 0.0
    window_slots: float = 2.5
    rush_window_slots: float = 2.0
    low_water: float = 0.75
    threads_slots: float = 2.0
    step_s: float = 0.0

    def layout(self, gpus: int, device: Device = DEVICE) -> Layout:
        """The farm for so many devices. A single slot has as many threads as are shipped for it."""
        single = threads(1, rush=False, pads=False, settling=_SETTLING) if device.slots == 1 else 0
        return Layout(
            gpus=gpus,
            window_slots=max(self.window_slots, single),
            rush_window_slots=self.rush_window_slots,
            low_water=self.low_water,
            threads_slots=max(self.threads_slots, single),
            step_s=device.full_batch_s if self.step_s else 0.0,
            device=device,
        )

    def policy(self, device: Device = DEVICE) -> Policy:
        """What its hosts decide batches by."""
        return Policy(
            slots=device.slots,
            limits=self.limits,
            patience_s=self.patience_s,
            late_share=self.late_share,
        )


OURS = "ours"
# By the defaults of the settings, for an engine that does not pad: batches of four for rush.
SHIPPED = "ours_as_shipped"
RIVALS: dict[str, Arm] = {
    "fifo": Arm(Fifo),
    "strict_priority": Arm(StrictPriority),
    "weighted_fair": Arm(WeightedFair),
}
ARMS: dict[str, Arm] = {
    OURS: Arm(Ours, patience_s=PATIENCE_S, late_share=LATE_SHARE),
    SHIPPED: Arm(
        Ours,
        limits=DEFAULT_LIMITS,
        patience_s=PATIENCE_S,
        late_share=LATE_SHARE,
        window_slots=SHIPPED_WINDOW_SLOTS,
        low_water=LOW_WATER,
        threads_slots=SHIPPED_THREADS_SLOTS,
        step_s=FULL_BATCH_S,
    ),
    **RIVALS,
}
