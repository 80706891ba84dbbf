"""One tier while a choice is being made: who is most urgent, and whose turn it is.

Knows one tier's offer; the choice between tiers, and between urgency and turn, is made elsewhere.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, nextafter

from shared.scheduling.fair import FairQueue
from shared.scheduling.offer import (
    NEW_TENANT,
    TenantShare,
    TierOffer,
    TierState,
    WaitingJob,
    WaitingSegment,
)


def deadline(job: WaitingJob, head_due_at: float, now_s: float) -> float:
    """The next target that a job can still meet: its head's, or its own; `inf` when it is late.

    A job that has fallen behind its pace may still be complete in time, so it keeps that deadline,
    and does not take the place of others that are still on pace.
    """
    if head_due_at > now_s:
        return head_due_at
    return job.due_at if job.due_at > now_s else inf


@dataclass(slots=True, eq=False)
class _Tenant:
    name: str
    turn_s: float
    jobs: FairQueue
    by_turn: bool  # its jobs are in the offer by turn too, not only by urgency
    waiting: int = 0
    served: bool = False


@dataclass(slots=True, eq=False)
class Contender:
    """A job in the contest. `taken` counts the segments of its offer that are picked."""

    job: WaitingJob
    tenant: _Tenant
    turn_s: float
    deadline: float = inf
    taken: int = 0

    @property
    def head(self) -> WaitingSegment:
        """The next segment; there is one unless the job is `spent`."""
        return self.job.segments[self.taken]

    @property
    def spent(self) -> bool:
        """True when every segment of the offer is picked."""
        return self.taken == len(self.job.segments)


class Contest:
    """A tier's contenders. Changes with every pick; lives for one choice."""

    def __init__(
        self, offer: TierOffer, state: TierState, *, now_s: float, forgiven_beyond_s: float
    ) -> None:
        self.tier = offer.tier
        self._now_s = now_s
        self._forgiven_beyond_s = forgiven_beyond_s
        self._fair = FairQueue(state.clock_s, rest_turn_s=offer.rest.tenant_turn_s)
        self._tenants: dict[str, _Tenant] = {}
        self._contenders: dict[str, Contender] = {}
        # Entries (time, job id, taken); those whose `taken` has passed are out of date.
        self._by_deadline: list[tuple[float, str, int]] = []
        self._by_head: list[tuple[float, str, int]] = []
        self._late = 0
        # Below these marks nothing waits that is not in here.
        self._deadline_mark = offer.rest.deadline_at
        self._head_mark = offer.rest.head_due_at
        for job in offer.jobs:
            if job.id in self._contenders:
                raise ValueError(f"job {job.id} is offered twice")
            tenant = self._tenants.get(job.tenant) or self._admit(job.tenant, offer)
            tenant.waiting += 1
            contender = self._contenders[job.id] = Contender(job, tenant, job.turn_s)
            self._enter(contender)
        for tenant in self._tenants.values():
            self._queue(tenant)

    @property
    def clock_s(self) -> float:
        """The clock of the tenants' turns, as it stands now."""
        return self._fair.clock_s

    @property
    def left_out(self) -> bool:
        """Whether anything waits in this tier that the offer did not hold."""
        marks = (self._deadline_mark, self._head_mark, self._fair.rest_turn_s)
        return min(marks) < inf or any(c.job.more for c in self._contenders.values())

    @property
    def has_late(self) -> bool:
        """Whether a job waits that cannot meet any target any more."""
        return self._late > 0

    @property
    def head_due_at(self) -> float:
        """When the segment that has been due for longest was due; `inf` when nothing waits."""
        oldest = self._top(self._by_head)
        offered_at = inf if oldest is None else oldest.head.due_at
        return min(offered_at, self._head_mark)

    @property
    def deadline_at(self) -> float:
        """The earliest deadline that can still be met; `inf` when there is none."""
        urgent = self._top(self._by_deadline)
        return min(inf if urgent is None else urgent.deadline, self._deadline_mark)

    def waits(self) -> bool:
        """Whether any segment of the offer is left."""
        return self._top(self._by_head) is not None

    def most_urgent(self) -> Contender | None:
        """Who has the earliest deadline; None when all are late, or it may be one left out."""
        urgent = self._top(self._by_deadline)
        if urgent is None or urgent.deadline > self._deadline_mark or urgent.deadline == inf:
            return None
        return urgent

    def longest_due(self) -> Contender | None:
        """Whose head has been due for longest, of those offered; None when none is left."""
        return self._top(self._by_head)

    def least_served(self) -> Contender | None:
        """The job whose turn it is, of the tenant whose turn it is; None if it may be left out."""
        name = self._fair.first()
        if name is None:
            return None
        job_id = self._tenants[name].jobs.first()
        return None if job_id is None else self._contenders[job_id]

    def serve(self, contender: Contender) -> WaitingSegment:
        """Take a contender's head, and charge its job and its tenant for it."""
        segment, tenant = contender.head, contender.tenant
        price_s = segment.audio_s / contender.job.weight
        limit_s = self._forgiven_beyond_s
        contender.turn_s = tenant.jobs.after(contender.turn_s, price_s, limit_s)
        tenant.turn_s = self._fair.after(tenant.turn_s, price_s, limit_s)
        tenant.served = True
        self._late -= contender.deadline == inf
        contender.taken += 1
        if contender.spent:
            tenant.jobs.remove(contender.job.id)
            tenant.waiting -= 1
            if contender.job.more:
                self._leave_out(contender, segment)
        else:
            self._enter(contender)
        self._queue(tenant)
        return segment

    def shares(self) -> dict[str, TenantShare]:
        """The new shares of the tenants that were served."""
        return {
            t.name: TenantShare(t.turn_s, t.jobs.clock_s)
            for t in self._tenants.values()
            if t.served
        }

    def turns(self) -> dict[str, float]:
        """The new turns of the jobs that were served."""
        return {c.job.id: c.turn_s for c in self._contenders.values() if c.taken}

    def _admit(self, name: str, offer: TierOffer) -> _Tenant:
        share = offer.tenants.get(name, NEW_TENANT)
        rest_turn_s = offer.rest.job_turn_s.get(name, inf)
        jobs = FairQueue(share.clock_s, rest_turn_s=rest_turn_s)
        tenant = _Tenant(name, share.turn_s, jobs, by_turn=rest_turn_s > -inf)
        self._tenants[name] = tenant
        return tenant

    def _leave_out(self, contender: Contender, last: WaitingSegment) -> None:
        """A job's offered segments have run out: the others are due no earlier than the last.

        Who has the same deadline does not pass them either: they may be of an older job.
        """
        self._head_mark = min(self._head_mark, last.due_at)
        deadline_at = nextafter(max(last.due_at, self._now_s), -inf)
        self._deadline_mark = min(self._deadline_mark, deadline_at)
        contender.tenant.jobs.leave_out(contender.turn_s)

    def _enter(self, contender: Contender) -> None:
        job, head = contender.job, contender.head
        contender.deadline = deadline(job, head.due_at, self._now_s)
        self._late += contender.deadline == inf
        heappush(self._by_deadline, (contender.deadline, job.id, contender.taken))
        heappush(self._by_head, (head.due_at, job.id, contender.taken))
        contender.tenant.jobs.put(job.id, contender.turn_s, (contender.deadline, job.id))

    def _queue(self, tenant: _Tenant) -> None:
        """Give a tenant its place among the others, with the deadline of the job it would send."""
        if not tenant.waiting:
            self._fair.remove(tenant.name)
            if tenant.by_turn and tenant.jobs.rest_turn_s < inf:
                self._fair.leave_out(tenant.turn_s)
        elif tenant.by_turn:
            job_id = tenant.jobs.first()
            # Whose next job was left out goes before the others, so that this is found out.
            at = -inf if job_id is None else self._contenders[job_id].deadline
            self._fair.put(tenant.name, tenant.turn_s, (at, job_id or ""))

    def _top(self, heap: list[tuple[float, str, int]]) -> Contender | None:
        while heap:
            _, job_id, taken = heap[0]
            contender = self._contenders[job_id]
            if contender.taken == taken:
                return contender
            heappop(heap)
        return None
