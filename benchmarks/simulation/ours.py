"""Our dispatch in the simulation: offers from the backlog, choices by the real policy."""

from collections.abc import Sequence

from benchmarks.simulation.backlog import Backlog
from benchmarks.simulation.work import Sent, SimJob, send_next
from shared.scheduling.choose import choose
from shared.scheduling.offer import Choice, PoolState
from shared.scheduling.pools import POOLS, Pool
from shared.tiers import Tier

_APART_S = 1e-9


class Ours:
    """Two lanes, one for each pool. Hosts take the equally urgent in the order of sending."""

    def __init__(self, pools: tuple[Pool, ...] = POOLS) -> None:
        self.lanes: Sequence[Sequence[str]] = [
            [tier.queue for tier in pool.tiers] for pool in pools
        ]
        self._pools = pools
        self._states = [PoolState() for _ in pools]
        self._sent_s = [0.0 for _ in pools]
        self._tiers = {tier: Backlog(tier) for tier in Tier}

    def arrive(self, job: SimJob) -> int:
        """Take a job into its tier's backlog."""
        self._tiers[job.tier].add(job)
        return next(i for i, pool in enumerate(self._pools) if job.tier in pool.tiers)

    def fill(self, lane: int, room: int, now_s: float) -> list[tuple[str, Sent]]:
        """Offer and choose until the room is filled or nothing waits."""
        letters: list[tuple[str, Sent]] = []
        pool = self._pools[lane]
        elsewhere_s = sum(s for i, s in enumerate(self._sent_s) if i != lane)
        while room > len(letters):
            left = room - len(letters)
            offers = [
                self._tiers[tier].offer(left, now_s)
                for tier in pool.tiers
                if self._tiers[tier].jobs
            ]
            if not offers:
                break
            choice = choose(
                pool, offers, self._states[lane], room=left, now_s=now_s, elsewhere_s=elsewhere_s
            )
            if not choice.picks:
                raise RuntimeError("an offer was made of which nothing could be chosen")
            letters += self._apply(lane, choice)
            if not choice.short:
                break
        return letters

    def order(self, sent: Sent, number: int) -> tuple[str, float, float]:
        """Hosts see the real tier and due time; of what is sent at once, each a moment later."""
        return sent.job.tier, sent.segment.due_at, number * _APART_S

    def _apply(self, lane: int, choice: Choice) -> list[tuple[str, Sent]]:
        self._states[lane] = choice.pool
        self._sent_s[lane] += sum(pick.audio_s for pick in choice.picks)
        tiers = {pick.job_id: pick.tier for pick in choice.picks}
        jobs = {job_id: self._tiers[tier].take(job_id) for job_id, tier in tiers.items()}
        letters = [(pick.tier.queue, send_next(jobs[pick.job_id])) for pick in choice.picks]
        for (tier, tenant), share in choice.tenants.items():
            self._tiers[tier].update(tenant, share)
        for job_id, job in jobs.items():
            if not job.all_sent:
                self._tiers[job.tier].add(job, choice.jobs[job_id])
        return letters
