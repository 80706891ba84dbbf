"""Chooses which waiting segments enter the window next. Pure: offers in, picks and new turns out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf

from shared.scheduling.fair import FairQueue
from shared.scheduling.offer import (
    NEW_TENANT,
    Choice,
    Pick,
    PoolState,
    TenantShare,
    TierOffer,
    WaitingJob,
    WaitingSegment,
)
from shared.tiers import Tier


@dataclass(frozen=True, slots=True)
class Rules:
    fair_share: float = 0.5
    bulk_floor: float = 0.1
    quantum_s: float = 60.0
    fair_within: bool = True


DEFAULT_RULES = Rules()


def choose(
    offers: Sequence[TierOffer],
    pool: PoolState,
    *,
    room: int,
    now_s: float,
    rush_served_s: float = 0.0,
    rules: Rules = DEFAULT_RULES,
) -> Choice:
    tiers = [_Tier(offer, now_s) for offer in offers]
    bulk = next((tier for tier in tiers if tier.offer.tier is Tier.BULK), None)
    turns = _Turns(pool, rules, now_s, bulk)
    turns.count_rush(rush_served_s)
    picks: list[Pick] = []
    while len(picks) < room:
        found = turns.next(tiers)
        if found is None:
            break
        tier, job, fair = found
        picks.append(turns.take(tier, job, fair))
        if job.exhausted and job.waiting.more:
            break
    short = len(picks) < room and any(tier.has_rest for tier in tiers)
    return Choice(
        picks=tuple(picks),
        pool=turns.state,
        clocks_s={tier.offer.tier: (tier.fair.clock_s, tier.fair_s) for tier in tiers},
        tenants={
            (tier.offer.tier, tenant.name): TenantShare(tenant.turn_s, tenant.jobs.clock_s)
            for tier in tiers
            for tenant in tier.tenants.values()
            if tenant.served
        },
        jobs={
            job.waiting.id: job.turn_s
            for tier in tiers
            for job in tier.jobs.values()
            if job.position
        },
        short=short,
    )


@dataclass(slots=True, eq=False)
class _Job:
    waiting: WaitingJob
    tenant: "_Tenant"
    turn_s: float
    position: int = 0

    @property
    def exhausted(self) -> bool:
        return self.position >= len(self.waiting.segments)

    @property
    def head(self) -> WaitingSegment:
        return self.waiting.segments[self.position]


@dataclass(slots=True, eq=False)
class _Tenant:
    name: str
    turn_s: float
    jobs: FairQueue
    listed: bool
    count: int = 0
    served: bool = False


class _Tier:
    def __init__(self, offer: TierOffer, now_s: float) -> None:
        self.offer = offer
        self.now_s = now_s
        self.fair_s = offer.fair_s
        rest = offer.rest
        self.has_rest = (
            min(rest.due_at, rest.head_due_at, rest.tenant_turn_s) < inf
            or any(job.more for job in offer.jobs)
        )
        self.fair = FairQueue(offer.clock_s, rest_turn_s=rest.tenant_turn_s)
        self.tenants: dict[str, _Tenant] = {}
        self.jobs: dict[str, _Job] = {}
        self.by_deadline: list[tuple[float, str, int]] = []
        self.by_head: list[tuple[float, str, int]] = []
        for waiting in offer.jobs:
            name = waiting.tenant
            tenant = self.tenants.get(name)
            if tenant is None:
                share = offer.tenants.get(name, NEW_TENANT)
                rest_turn = rest.job_turn_s.get(name, inf)
                tenant = self.tenants[name] = _Tenant(
                    name,
                    share.turn_s,
                    FairQueue(share.clock_s, rest_turn_s=rest_turn),
                    listed=rest_turn > -inf,
                )
            job = self.jobs[waiting.id] = _Job(waiting, tenant, waiting.turn_s)
            tenant.count += 1
            self._enter(job)
        for tenant in self.tenants.values():
            self._queue(tenant)

    def deadline(self, job: _Job) -> float:
        due = job.head.due_at
        if due > self.now_s:
            return due
        due = job.waiting.due_at
        return due if due > self.now_s else inf

    def _enter(self, job: _Job) -> None:
        job.tenant.jobs.put(job.waiting.id, job.turn_s, self.deadline(job))
        heappush(self.by_deadline, (self.deadline(job), job.waiting.id, job.position))
        heappush(self.by_head, (job.head.due_at, job.waiting.id, job.position))

    def _queue(self, tenant: _Tenant) -> None:
        if not tenant.listed:
            return
        if not tenant.count:
            self.fair.remove(tenant.name)
            return
        first = tenant.jobs.first()
        due = self.deadline(self.jobs[first]) if first is not None else -inf
        self.fair.put(tenant.name, tenant.turn_s, due)

    def _top(self, heap) -> _Job | None:
        while heap:
            _, key, position = heap[0]
            job = self.jobs[key]
            if job.position == position:
                return job
            heappop(heap)
        return None

    def pressing(self): return self._top(self.by_deadline)
    def oldest(self): return self._top(self.by_head)

    def key(self) -> float:
        job = self.pressing()
        if job is None: return inf
        d = self.deadline(job)
        if self.offer.tier is not Tier.BULK:
            o = self.oldest()
            if o.waiting.due_at <= self.now_s:
                return o.head.due_at
        return min(d, 1e300)

    def fairest(self) -> _Job | None:
        name = self.fair.first()
        if name is None:
            return None
        first = self.tenants[name].jobs.first()
        return None if first is None else self.jobs[first]

    def serve(self, job: _Job, quantum_s: float) -> WaitingSegment:
        segment = job.head
        cost = segment.audio_s / job.waiting.weight
        tenant = job.tenant
        job.position += 1
        tenant.served = True
        job.turn_s = min(
            max(job.turn_s, tenant.jobs.clock_s) + cost, tenant.jobs.clock_s + max(quantum_s, cost)
        )
        tenant.turn_s = min(
            max(tenant.turn_s, self.fair.clock_s) + cost, self.fair.clock_s + max(quantum_s, cost)
        )
        if job.exhausted:
            tenant.jobs.remove(job.waiting.id)
            tenant.count -= 1
        else:
            self._enter(job)
        self._queue(tenant)
        return segment


@dataclass(slots=True)
class _Turns:
    state: PoolState
    rules: Rules
    now_s: float
    bulk: _Tier | None
    owed_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.owed_s = self.state.owed_s

    def _past_due(self) -> _Job | None:
        if self.bulk is None:
            return None
        job = self.bulk.oldest()
        return job if job is not None and job.head.due_at <= self.now_s else None

    def count_rush(self, rush_served_s: float) -> None:
        if self._past_due() is not None:
            self.owed_s += self.rules.bulk_floor * max(0.0, rush_served_s - self.state.rush_seen_s)
        self.owed_s = min(self.owed_s, self.rules.quantum_s)
        self.state = replace(self.state, rush_seen_s=rush_served_s)

    def next(self, tiers: Sequence[_Tier]):
        late = self._past_due()
        if late is None:
            self.owed_s = min(self.owed_s, 0.0)
        elif self.owed_s > 0 and self.bulk is not None:
            return self.bulk, late, None
        tier = min(tiers, key=lambda t: t.key())
        if tier.key() == inf:
            return None
        if tier.fair_s < 0 or self.rules.fair_share == 0:
            job = tier.pressing()
            d = tier.deadline(job)
            if d < inf:
                if d > tier.offer.rest.due_at: return None
                return tier, job, False
        job = tier.fairest()
        return None if job is None else (tier, job, True)

    def take(self, tier: _Tier, job: _Job, fair) -> Pick:
        late = self._past_due()
        was_late = late is not None
        is_late = tier is self.bulk and job.head.due_at <= self.now_s
        segment = tier.serve(job, self.rules.quantum_s)
        cost = segment.audio_s
        floor, share = self.rules.bulk_floor, self.rules.fair_share
        if fair is not None:
            tier.fair_s += (share - 1) * cost if fair else share * cost
            tier.fair_s = max(-60, min(60, tier.fair_s))
        if was_late:
            if is_late:
                self.owed_s = max(self.owed_s - (1 - floor) * cost, -(1-floor)*cost)
            else:
                self.owed_s += floor * cost
        self.state = replace(self.state, owed_s=self.owed_s)
        return Pick(tier.offer.tier, job.waiting.id, segment.index, segment.audio_s)
