"""Decides which waiting utterances to admit now, or how long to wait for more. Pure.

Knows no engine, no socket and no thread. The rules, in order:

1. What has waited longer than `patience_s`, and for some batches, goes first, then rush, then the
   rest; inside each in the order of arrival, since who is next was decided where all that waits is
   seen. Where rush left the others less than `late_share` of what was spoken while some of them
   were past due, those go before rush too, and with them what came before them: on any device,
   however fast. So a stream of rush work cannot starve the others for ever.
2. The first in that order always leads; it is never skipped, so nothing is starved by its size.
3. A batch never exceeds the free slots, nor the smallest `max_batch` of any member, held or new.
4. Members share a group (equal engine parameters, and what else the engine cannot mix).
5. One that must run alone (it was there when hosts crashed) gets the engine for itself.
6. A static engine runs its batch as long as the longest member: among equally urgent ones those of
   like sizes join the leader, unless somebody would miss a due time for it; seats left go to the
   others, but only rush work may slow a rush leader down. Idle, it waits for a batch to fill, but
   no longer than the smallest `max_wait_s` of its members, and not at all when nobody is left who
   could send more. Where an engine pads, those whose padding would be more than the batch's own
   text are left for the next one, unless somebody would be late for that.
7. A slot-wise engine runs every row for itself: sizes do not matter and a free slot is filled at
   once. No row waits for another, so rush's `max_batch` binds nobody there: rush takes any free
   slot, and beside it the others fill theirs. What a row more costs is a part of each step.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from shared.settings import DEFAULT_TIERS
from shared.tiers import Tier
from worker.batching.given import LATE_SHARE, Given, is_late
from worker.batching.sizes import alike, bounded_in_time, closest, keeps_due_times

HARD_MAX_BATCH = 8
PATIENCE_S = 5.0
PATIENCE_STEPS = 10  # the least patience: on a slow engine nothing has waited long after one batch
NOTHING_GIVEN = Given()


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
    late_share: float = LATE_SHARE
    slotwise: bool = False
    pads: bool = False

    def decide(
        self,
        waiting: Collection[Waiting],
        held: Sequence[Held],
        *,
        may_arrive: int,
        now_s: float,
        due_clock_s: float = 0.0,
        step_s: float = 0.0,
        given: Given = NOTHING_GIVEN,
    ) -> Decision:
        """Choose from `waiting`; `may_arrive` senders have nothing here and could send more.

        `now_s` is on the clock of `arrived_s`, `due_clock_s` on that of `due_at`; `step_s` is how
        long a full batch takes at present, 0 while nobody knows; `given` is what rush has left.
        """
        if not waiting or any(h.alone for h in held):
            return Decision()
        turn_until_s = self._turn_until_s(waiting, given, due_clock_s)
        ranks = {w.id: self._rank(w, now_s, step_s, turn_until_s) for w in waiting}
        order = sorted(waiting, key=lambda w: ranks[w.id])
        lead = order[0]
        if lead.alone:
            return Decision() if held else Decision(admit=(lead.id,))
        if held and held[0].group != lead.group:
            return Decision()
        peers = [w for w in order[1:] if w.group == lead.group and not w.alone]
        if lead.tier == Tier.RUSH and not self.slotwise:
            peers = [w for w in peers if w.tier == Tier.RUSH or not _slows(lead, w)]
        urgency = {id_: rank[0] for id_, rank in ranks.items()}
        batch = self._choose(lead, peers, held, urgency)
        if not keeps_due_times(order, batch, step_s=step_s, now=due_clock_s):
            batch = self._fill([lead, *peers], held)
        if not batch:
            return Decision()
        if not held and not self.slotwise:
            seats = min(self.slots, *(self._limit(w.tier).max_batch for w in batch))
            wait_s = self._wait_s(batch, now_s)
            if len(batch) < seats and may_arrive > 0 and wait_s > 0:
                return Decision(wait_s=wait_s)
        if self.pads and not held:
            batch = bounded_in_time(order, batch, step_s=step_s, now=due_clock_s)
        return Decision(admit=tuple(w.id for w in batch))

    def _turn_until_s(
        self, waiting: Collection[Waiting], given: Given, due_clock_s: float
    ) -> float:
        """What came no later than this, and is not rush, has its turn before rush."""
        if not given.owes(self.late_share):
            return -inf
        return max((w.arrived_s for w in waiting if is_late(w, due_clock_s)), default=-inf)

    def _rank(
        self, waiting: Waiting, now_s: float, step_s: float, turn_until_s: float
    ) -> tuple[int, float, float, str]:
        waited_s = now_s - waiting.arrived_s
        turn = waiting.tier != Tier.RUSH and waiting.arrived_s <= turn_until_s
        if turn or waited_s > max(self.patience_s, PATIENCE_STEPS * step_s):
            return (0, waiting.arrived_s, waiting.due_at, waiting.id)
        urgency = 1 if waiting.tier == Tier.RUSH else 2
        return (urgency, waiting.arrived_s, waiting.due_at, waiting.id)

    def _limit(self, tier: str) -> TierLimits:
        return self.limits.get(tier, TierLimits())

    def _choose(
        self,
        lead: Waiting,
        peers: list[Waiting],
        held: Sequence[Held],
        urgency: Mapping[str, int],
    ) -> list[Waiting]:
        """Seat the lead and those that go best with it; only the equally urgent by their sizes."""
        if self.slotwise:
            return self._fill([lead, *peers], held)
        equals = [w for w in peers if urgency[w.id] == urgency[lead.id]]
        others = [w for w in peers if urgency[w.id] != urgency[lead.id]]
        others.sort(key=lambda w: (urgency[w.id], not alike(lead, w)))  # stable
        room = min(self.slots, self._limit(lead.tier).max_batch) - len(held) - 1
        return self._fill([lead, *closest(lead, equals, room), *others], held)

    def _fill(self, candidates: Sequence[Waiting], held: Sequence[Held]) -> list[Waiting]:
        """Seat candidates in this order while everybody on board allows it."""
        strict = [self._limit(h.tier) for h in held if not self._binds_nobody(h.tier)]
        cap = min([self.slots, *(limit.max_batch for limit in strict)])
        batch: list[Waiting] = []
        for candidate in candidates:
            binds = not self._binds_nobody(candidate.tier)
            allowed = min(cap, self._limit(candidate.tier).max_batch) if binds else cap
            seats = allowed if binds else self.slots
            if len(held) + len(batch) + 1 <= seats:
                batch.append(candidate)
                cap = allowed
            elif not batch:
                return []  # nobody overtakes the first: the batch drains until it fits
        return batch

    def _binds_nobody(self, tier: str) -> bool:
        return self.slotwise and tier == Tier.RUSH

    def _wait_s(self, batch: Sequence[Waiting], now_s: float) -> float:
        return min(w.arrived_s + self._limit(w.tier).max_wait_s for w in batch) - now_s


def _slows(lead: Waiting, other: Waiting) -> bool:
    return other.chars > lead.chars and not alike(lead, other)
