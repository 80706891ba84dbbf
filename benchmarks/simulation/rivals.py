"""Other orders of dispatch, each at its best: full batches for every tier, hosts that obey it."""

from collections import deque
from collections.abc import Sequence

from benchmarks.simulation.work import Sent, SimJob, send_next
from shared.tiers import Tier


class Fifo:
    """One queue, in order of arrival."""

    lanes: Sequence[Sequence[str]] = (("all",),)

    def __init__(self) -> None:
        self._jobs: deque[SimJob] = deque()

    def arrive(self, job: SimJob) -> int:
        """Join the end of the line."""
        self._jobs.append(job)
        return 0

    def fill(self, _lane: int, room: int, _now_s: float) -> list[tuple[str, Sent]]:
        """The oldest jobs first."""
        return [("all", sent) for sent in _drain(self._jobs, room)]

    def order(self, _sent: Sent, number: int) -> tuple[str, float, float]:
        """Hosts keep the order and know no tier."""
        return Tier.STANDARD, float(number), 0.0


class StrictPriority:
    """Rush before standard before bulk, always; in each the oldest first. A window for each."""

    lanes: Sequence[Sequence[str]] = tuple((tier.queue,) for tier in Tier)

    def __init__(self) -> None:
        self._jobs = {tier: deque[SimJob]() for tier in Tier}
        self._tiers = tuple(Tier)

    def arrive(self, job: SimJob) -> int:
        """Join the end of the tier's line."""
        self._jobs[job.tier].append(job)
        return self._tiers.index(job.tier)

    def fill(self, lane: int, room: int, _now_s: float) -> list[tuple[str, Sent]]:
        """The oldest jobs of the tier first."""
        tier = self._tiers[lane]
        return [(tier.queue, sent) for sent in _drain(self._jobs[tier], room)]

    def order(self, sent: Sent, number: int) -> tuple[str, float, float]:
        """Hosts take rush first, then standard, then bulk."""
        behind_all_standard = 1e12 if sent.job.tier is Tier.BULK else 0.0
        return sent.job.tier, behind_all_standard + number, 0.0


class WeightedFair:
    """Rush in a lane of its own; standard and bulk share by weight, a tier's tenants equally.

    Weights of 3 to 1 are the best of those tried (3:1, 2:1, 1:1).
    """

    lanes: Sequence[Sequence[str]] = ((Tier.RUSH.queue,), ("others",))

    def __init__(self, standard: float = 3.0, bulk: float = 1.0) -> None:
        self._weights = {Tier.RUSH: 1.0, Tier.STANDARD: standard, Tier.BULK: bulk}
        self._jobs: dict[Tier, dict[str, deque[SimJob]]] = {tier: {} for tier in Tier}
        self._served: dict[Tier, dict[str, float]] = {tier: {} for tier in Tier}
        self._clock = dict.fromkeys(Tier, 0.0)
        self._tier_served = dict.fromkeys(Tier, 0.0)
        self._tier_clock = 0.0

    def arrive(self, job: SimJob) -> int:
        """Join the end of the tenant's line in its tier."""
        self._jobs[job.tier].setdefault(job.tenant, deque()).append(job)
        return 0 if job.tier is Tier.RUSH else 1

    def fill(self, lane: int, room: int, _now_s: float) -> list[tuple[str, Sent]]:
        """The tier with the lowest weighted service, its tenant with the lowest service."""
        tiers = (Tier.RUSH,) if lane == 0 else (Tier.STANDARD, Tier.BULK)
        letters: list[tuple[str, Sent]] = []
        while len(letters) < room and (waiting := [t for t in tiers if self._jobs[t]]):
            tier = min(waiting, key=self._tier_start)
            start = self._tier_start(tier)
            sent = self._next(tier)
            if lane:
                self._tier_clock = start
                self._tier_served[tier] = start + sent.segment.audio_s / self._weights[tier]
            letters.append((self.lanes[lane][0], sent))
        return letters

    def order(self, sent: Sent, number: int) -> tuple[str, float, float]:
        """Hosts take rush first and keep the order of the rest."""
        return sent.job.tier, float(number), 0.0

    def _tier_start(self, tier: Tier) -> float:
        return max(self._tier_served[tier], self._tier_clock)

    def _next(self, tier: Tier) -> Sent:
        jobs, served, clock = self._jobs[tier], self._served[tier], self._clock[tier]
        tenant = min(jobs, key=lambda name: (max(served.get(name, 0.0), clock), name))
        self._clock[tier] = max(served.get(tenant, 0.0), clock)
        (sent,) = _drain(jobs[tenant], 1)
        if not jobs[tenant]:
            del jobs[tenant]
        served[tenant] = self._clock[tier] + sent.segment.audio_s
        return sent


def _drain(jobs: deque[SimJob], room: int) -> list[Sent]:
    """Up to `room` sentences of the first jobs in a line."""
    taken: list[Sent] = []
    while jobs and len(taken) < room:
        taken.append(send_next(jobs[0]))
        if jobs[0].all_sent:
            jobs.popleft()
    return taken
