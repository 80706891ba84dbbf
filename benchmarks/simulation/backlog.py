"""What waits in one tier, with the sorted indexes of which the ledger makes its offers.

Each list here stands for a SQL index, each slice of it for one bounded query.
"""

from bisect import bisect_right, insort
from math import inf

from benchmarks.simulation.work import SimJob
from shared.scheduling.offer import NEW_TENANT, Rest, TenantShare, TierOffer, WaitingJob
from shared.tiers import Tier

URGENT_JOBS = 64  # by each of the three orders of urgency
TENANTS = 32
JOBS_OF_A_TENANT = 8

_Index = list[tuple[float, str]]


class Backlog:
    """A tier's waiting jobs."""

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self.jobs: dict[str, SimJob] = {}
        self._shares: dict[str, TenantShare] = {}
        self._turns: dict[str, float] = {}
        self._by_head: _Index = []  # (head's due time, job)
        self._by_end: _Index = []  # (job's due time, job)
        self._by_tenant: _Index = []  # (turn, tenant)
        self._by_turn: dict[str, _Index] = {}  # tenant -> (turn, job)

    def add(self, job: SimJob, turn_s: float = 0.0) -> None:
        """A job begins to wait, or waits on with another turn."""
        self.jobs[job.id] = job
        self._turns[job.id] = turn_s
        insort(self._by_head, (job.head.due_at, job.id))
        insort(self._by_end, (job.due_s, job.id))
        if job.tenant not in self._by_turn:
            self._by_turn[job.tenant] = []
            insort(self._by_tenant, (self._share(job.tenant).turn_s, job.tenant))
        insort(self._by_turn[job.tenant], (turn_s, job.id))

    def take(self, job_id: str) -> SimJob:
        """Take a job out; what was served and waits on comes back with `add`."""
        job = self.jobs.pop(job_id)
        _remove(self._by_head, (job.head.due_at, job.id))
        _remove(self._by_end, (job.due_s, job.id))
        mine = self._by_turn[job.tenant]
        _remove(mine, (self._turns.pop(job_id), job.id))
        if not mine:
            del self._by_turn[job.tenant]
            _remove(self._by_tenant, (self._share(job.tenant).turn_s, job.tenant))
        return job

    def update(self, tenant: str, share: TenantShare) -> None:
        """Record a tenant's new share."""
        if tenant in self._by_turn:
            _remove(self._by_tenant, (self._share(tenant).turn_s, tenant))
            insort(self._by_tenant, (share.turn_s, tenant))
        self._shares[tenant] = share

    def offer(self, room: int, now_s: float) -> TierOffer:
        """The most urgent jobs, and those of the tenants whose turn is next."""
        limit = min(room, URGENT_JOBS)
        on_pace = bisect_right(self._by_head, (now_s, "~"))
        in_time = bisect_right(self._by_end, (now_s, "~"))
        chosen = {job_id: None for _, job_id in self._by_head[:limit]}
        head_due_at = deadline_at = inf
        if len(self._by_head) > limit:
            head_due_at = self._by_head[limit][0]
            for index, start in (self._by_head, on_pace), (self._by_end, in_time):
                chosen |= {job_id: None for _, job_id in index[start : start + limit]}
                if len(index) > start + limit:
                    deadline_at = min(deadline_at, index[start + limit][0])
        job_turns = {self.jobs[job_id].tenant: -inf for job_id in chosen}
        tenants = min(room, TENANTS)
        each = min(room, max(JOBS_OF_A_TENANT, room // len(self._by_tenant)))
        for _, tenant in self._by_tenant[:tenants]:
            mine = self._by_turn[tenant]
            job_turns[tenant] = mine[each][0] if len(mine) > each else inf
            chosen |= {job_id: None for _, job_id in mine[:each]}
        tenant_turn_s = self._by_tenant[tenants][0] if len(self._by_tenant) > tenants else inf
        heads = max(2, -(-2 * room // len(chosen)))
        return TierOffer(
            tier=self.tier,
            jobs=[self._waiting(job_id, heads) for job_id in chosen],
            tenants={name: self._shares[name] for name in job_turns if name in self._shares},
            rest=Rest(deadline_at, head_due_at, tenant_turn_s, job_turns),
        )

    def _share(self, tenant: str) -> TenantShare:
        return self._shares.get(tenant, NEW_TENANT)

    def _waiting(self, job_id: str, heads: int) -> WaitingJob:
        job = self.jobs[job_id]
        end = job.sent + heads
        return WaitingJob(
            id=job_id,
            tenant=job.tenant,
            due_at=job.due_s,
            segments=job.segments[job.sent : end],
            more=end < len(job.segments),
            turn_s=self._turns[job_id],
        )


def _remove(index: _Index, entry: tuple[float, str]) -> None:
    place = bisect_right(index, entry) - 1
    if index[place] != entry:
        raise ValueError(f"{entry} is not in the index")
    del index[place]
