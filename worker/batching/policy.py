"""Decides which waiting utterances to admit now, or how long to wait for more. Pure.

Knows no engine, no socket and no thread. The rules, in order:

1. What has waited longer than `patience_s` goes first, then rush, then the rest; inside each by due
   time. So a stream of rush work cannot starve the others for ever.
2. The first in that order always leads; it is never skipped, so nothing is starved by its size.
3. A batch never exceeds the free slots, nor the smallest `max_batch` of any member, held or new.
4. Members share a group (equal engine parameters). Among equally urgent ones those of a like size
   come first, and seats left go to the others; but only rush work may slow a rush leader down.
5. One that must run alone (it was there when hosts crashed) gets the engine for itself.
6. An idle engine waits for a batch to fill, but no longer than the smallest `max_wait_s` of its
   members, and not at all when nobody is left who could send more. A busy one refills at once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from shared.settings import DEFAULT_TIERS
from shared.tiers import Tier

HARD_MAX_BATCH = 8
PATIENCE_S = 5.0
_SIZE_RATIO = 1.5  # sizes within this ratio waste little padding on each other
_SIZE_SLACK_CHARS = 20  # nor do sizes that differ by no more than this


@dataclass(frozen=True, slots=True)
class TierLimits:
    """How a tier's utterances may be batched."""

    max_batch: int = HARD_MAX_BATCH
    max_wait_s: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.max_batch <= HARD_MAX_BATCH:
            raise ValueError(f"max_batch must lie between 1 and {HARD_MAX_BATCH}")
        if not 0 <= self.max_wait_s < float("inf"):
            raise ValueError("max_wait_s must be a number of seconds, 0 or more")


DEFAULT_LIMITS: Mapping[str, TierLimits] = {
    tier.value: TierLimits(settings.max_batch, settings.max_wait_s)
    for tier, settings in DEFAULT_TIERS.items()
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """An utterance that waits to be admitted. Times are seconds of any one clock but `due_at`."""

    id: str
    tier: str
    due_at: float
    chars: int
    arrived_s: float
    group: str = ""
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """An utterance that the engine holds already."""

    tier: str
    group: str = ""
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Ids to admit now, in order; or, when empty, seconds after which to ask again.

    `wait_s` is None when only a new arrival or a freed slot can change the decision.
    """

    admit: tuple[str, ...] = ()
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules above with their numbers. `slots` is the engine's, lowered after out-of-memory."""

    slots: int
    limits: Mapping[str, TierLimits] = field(default_factory=lambda: dict(DEFAULT_LIMITS))
    patience_s: float = PATIENCE_S

    def decide(
        self, waiting: Collection[Waiting], held: Sequence[Held], *, may_arrive: int, now_s: float
    ) -> Decision:
        """Choose from `waiting`; `may_arrive` senders have nothing here and could send more."""
        if not waiting or any(h.alone for h in held):
            return Decision()
        order = sorted(waiting, key=lambda w: self._rank(w, now_s))
        lead = order[0]
        if lead.alone:
            return Decision() if held else Decision(admit=(lead.id,))
        cap = min([self.slots, *(self._limit(h.tier).max_batch for h in held)])
        batch = self._fill(order, held, cap, now_s)
        if not batch:
            return Decision()
        if not held:
            seats = min(cap, *(self._limit(w.tier).max_batch for w in batch))
            wait_s = self._wait_s(batch, now_s)
            if len(batch) < seats and may_arrive > 0 and wait_s > 0:
                return Decision(wait_s=wait_s)
        return Decision(admit=tuple(w.id for w in batch))

    def _rank(self, waiting: Waiting, now_s: float) -> tuple[int, float, float, str]:
        if now_s - waiting.arrived_s > self.patience_s:
            return (0, waiting.arrived_s, waiting.due_at, waiting.id)
        urgency = 1 if waiting.tier == Tier.RUSH else 2
        return (urgency, waiting.due_at, waiting.arrived_s, waiting.id)

    def _limit(self, tier: str) -> TierLimits:
        return self.limits.get(tier, TierLimits())

    def _fill(
        self, order: list[Waiting], held: Sequence[Held], cap: int, now_s: float
    ) -> list[Waiting]:
        lead = order[0]
        if held and held[0].group != lead.group:
            return []
        peers = [w for w in order[1:] if w.group == lead.group and not w.alone]
        if lead.tier == Tier.RUSH:
            peers = [w for w in peers if w.tier == Tier.RUSH or not _slows(lead, w)]
        peers.sort(key=lambda w: (self._rank(w, now_s)[0], not _alike(lead, w)))  # stable
        batch: list[Waiting] = []
        for candidate in [lead, *peers]:
            allowed = min(cap, self._limit(candidate.tier).max_batch)
            if len(held) + len(batch) + 1 <= allowed:
                batch.append(candidate)
                cap = allowed
            elif candidate is lead:
                return []  # nobody overtakes the first: the batch drains until it fits
        return batch

    def _wait_s(self, batch: Sequence[Waiting], now_s: float) -> float:
        return min(w.arrived_s + self._limit(w.tier).max_wait_s for w in batch) - now_s


def _alike(one: Waiting, other: Waiting) -> bool:
    small, large = sorted((one.chars, other.chars))
    return large <= small * _SIZE_RATIO or large - small <= _SIZE_SLACK_CHARS


def _slows(lead: Waiting, other: Waiting) -> bool:
    return other.chars > lead.chars and not _alike(lead, other)
