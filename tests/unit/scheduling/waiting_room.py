"""A ledger in memory for the policy's tests: keeps jobs and turns, and makes bounded offers.

Every list is sorted anew for every offer; how little is offered of each is up to the test.
"""

from dataclasses import dataclass, field
from math import inf

from shared.scheduling.choose import choose
from shared.scheduling.offer import (
    NEW_TENANT,
    Choice,
    Pick,
    PoolState,
    Rest,
    TenantShare,
    TierOffer,
    WaitingJob,
    WaitingSegment,
)
from shared.scheduling.pools import SHARED_POOL, Pool
from shared.tiers import Tier


@dataclass
class Job:
    id: str
    tenant: str
    tier: Tier
    due_at: float
    segments: list[WaitingSegment]
    weight: float = 1.0
    turn_s: float = 0.0

    @property
    def head_due_at(self) -> float:
        return self.segments[0].due_at


@dataclass(frozen=True)
class Bounds:
    """How much an offer holds: jobs by urgency, tenants, jobs of each, segments of each."""

    urgent: int = 10_000
    tenants: int = 10_000
    jobs: int = 10_000
    heads: int = 10_000


@dataclass
class WaitingRoom:
    pool: Pool = SHARED_POOL
    bounds: Bounds = field(default_factory=Bounds)
    jobs: dict[str, Job] = field(default_factory=dict)
    shares: dict[tuple[Tier, str], TenantShare] = field(default_factory=dict)
    state: PoolState = field(default_factory=PoolState)

    def add(
        self,
        job_id: str,
        tenant: str = "A",
        tier: Tier = Tier.STANDARD,
        *,
        segments: int = 1,
        due_at: float = 1_000.0,
        head_due_at: float | None = None,
        audio_s: float = 6.0,
        weight: float = 1.0,
    ) -> Job:
        """A job of equal segments, all due at once, with the job unless said otherwise."""
        at = due_at if head_due_at is None else head_due_at
        waiting = [WaitingSegment(i, at, audio_s) for i in range(segments)]
        job = self.jobs[job_id] = Job(job_id, tenant, tier, due_at, waiting, weight)
        return job

    def waiting(self) -> int:
        return sum(len(job.segments) for job in self.jobs.values())

    def offers(self, now_s: float) -> list[TierOffer]:
        return [
            self._offer(tier, jobs, now_s)
            for tier in self.pool.tiers
            if (jobs := [job for job in self.jobs.values() if job.tier is tier])
        ]

    def fill(self, room: int, *, now_s: float = 0.0, elsewhere_s: float = 0.0) -> list[Pick]:
        """Offer and choose until the room is full or nothing waits."""
        picks: list[Pick] = []
        while True:
            choice = choose(
                self.pool,
                self.offers(now_s),
                self.state,
                room=room - len(picks),
                now_s=now_s,
                elsewhere_s=elsewhere_s,
            )
            self._apply(choice)
            picks += choice.picks
            if not choice.short:
                return picks
            assert choice.picks, "an offer of which nothing could be chosen"

    def _apply(self, choice: Choice) -> None:
        self.state = choice.pool
        self.shares |= choice.tenants
        for job_id, turn_s in choice.jobs.items():
            self.jobs[job_id].turn_s = turn_s
        for pick in choice.picks:
            job = self.jobs[pick.job_id]
            sent = job.segments.pop(0)
            assert (sent.index, job.tier) == (pick.index, pick.tier), "out of order in a job"
            if not job.segments:
                del self.jobs[job.id]

    def _share(self, tier: Tier, tenant: str) -> TenantShare:
        return self.shares.get((tier, tenant), NEW_TENANT)

    def _offer(self, tier: Tier, jobs: list[Job], now_s: float) -> TierOffer:
        by_head = sorted(jobs, key=lambda j: (j.head_due_at, j.id))
        on_pace = [j for j in by_head if j.head_due_at > now_s]
        by_end = sorted((j for j in jobs if j.due_at > now_s), key=lambda j: (j.due_at, j.id))
        limit = self.bounds.urgent
        chosen = {j.id: j for order in (by_head, on_pace, by_end) for j in order[:limit]}
        job_turns = {j.tenant: -inf for j in chosen.values()}
        tenants = sorted(
            {j.tenant for j in jobs}, key=lambda name: (self._share(tier, name).turn_s, name)
        )
        for tenant in tenants[: self.bounds.tenants]:
            mine = sorted((j for j in jobs if j.tenant == tenant), key=lambda j: (j.turn_s, j.id))
            chosen |= {j.id: j for j in mine[: self.bounds.jobs]}
            left = mine[self.bounds.jobs :]
            job_turns[tenant] = left[0].turn_s if left else inf
        late_tenants = tenants[self.bounds.tenants :]
        rest = Rest(
            deadline_at=min(
                [j.head_due_at for j in on_pace[limit:]] + [j.due_at for j in by_end[limit:]],
                default=inf,
            ),
            head_due_at=min((j.head_due_at for j in by_head[limit:]), default=inf),
            tenant_turn_s=self._share(tier, late_tenants[0]).turn_s if late_tenants else inf,
            job_turn_s=job_turns,
        )
        return TierOffer(
            tier=tier,
            jobs=[self._waiting(job) for job in chosen.values()],
            tenants={name: self._share(tier, name) for name in job_turns},
            rest=rest,
        )

    def _waiting(self, job: Job) -> WaitingJob:
        heads = job.segments[: self.bounds.heads]
        return WaitingJob(
            id=job.id,
            tenant=job.tenant,
            due_at=job.due_at,
            segments=heads,
            more=len(job.segments) > len(heads),
            weight=job.weight,
            turn_s=job.turn_s,
        )
