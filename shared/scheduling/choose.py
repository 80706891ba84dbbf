"""Chooses which waiting segments enter a pool's window next. Pure: offers in, picks and turns out.

The rules, in order:

1. Past-due bulk gets its share of the audio sent, whatever else waits.
2. Between tiers the earliest deadline that can still be met decides. Late work of another tier
   than bulk counts as due now; late bulk gives way to what can still be met, and lives on rule 1.
3. Inside a tier, turns alternate by audio: some go to the earliest deadline, the others to the
   tenant served least, and there to its job served least. So a deadline cannot be missed for the
   sake of fairness alone, and no flood, however urgent, takes more than a part from anybody.
4. Inside a job, by due time. Equal deadlines: the lower id first, which is the older job.

Nothing here is random, and nothing waits while there is room.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from shared.scheduling.contest import Contender, Contest
from shared.scheduling.offer import Choice, Pick, PoolState, Rest, TierOffer, TierState
from shared.scheduling.pools import Pool
from shared.tiers import Tier


def choose(
    pool: Pool,
    offers: Sequence[TierOffer],
    state: PoolState,
    *,
    room: int,
    now_s: float,
    elsewhere_s: float = 0.0,
) -> Choice:
    """Pick up to `room` segments, and say how the turns stand afterwards.

    `now_s` is of the clock that due times are of. `elsewhere_s` is the audio ever sent by other
    pools: past-due bulk has its share of that too. Its cost is O(offered + room) heap operations.
    """
    contests = [
        Contest(
            offer,
            state.tiers.get(offer.tier, TierState()),
            now_s=now_s,
            forgiven_beyond_s=pool.forgiven_beyond_s,
        )
        for offer in offers
    ]
    chooser = _Chooser(
        pool,
        contests,
        now_s,
        owed_s=state.owed_s,
        fair_s={tier: tier_state.fair_s for tier, tier_state in state.tiers.items()},
    )
    chooser.count_elsewhere(elsewhere_s - state.elsewhere_s)
    picks: list[Pick] = []
    while len(picks) < room and (pick := chooser.next()) is not None:
        picks.append(pick)
    if not picks and room > 0 and any(contest.waits() for contest in contests):
        # The marks of what was left out cannot be right: better a wrong order than a standstill.
        blunt = [replace(offer, rest=Rest()) for offer in offers]
        choice = choose(pool, blunt, state, room=1, now_s=now_s, elsewhere_s=elsewhere_s)
        return replace(choice, short=room > 1)
    tiers = {c.tier: TierState(c.clock_s, chooser.fair_s.get(c.tier, 0.0)) for c in contests}
    return Choice(
        picks=tuple(picks),
        pool=PoolState({**state.tiers, **tiers}, chooser.owed_s, elsewhere_s),
        tenants={(c.tier, name): share for c in contests for name, share in c.shares().items()},
        jobs={job_id: turn_s for c in contests for job_id, turn_s in c.turns().items()},
        short=len(picks) < room and any(c.waits() or c.left_out for c in contests),
    )


@dataclass(slots=True)
class _Chooser:
    """The running choice: whose turn it is, and what past-due bulk is owed."""

    pool: Pool
    contests: list[Contest]
    now_s: float
    owed_s: float
    fair_s: dict[Tier, float]

    def count_elsewhere(self, audio_s: float) -> None:
        """Count audio that other pools sent since the last choice."""
        self._owe(self._late_bulk(), max(0.0, audio_s) * self.pool.late_bulk_share)

    def next(self) -> Pick | None:
        """Serve one segment; None when nothing waits, or what comes next was not offered."""
        late_bulk = self._late_bulk()
        if late_bulk is None:
            self.owed_s = min(self.owed_s, 0.0)  # a debt lasts only as long as somebody waits
        if late_bulk is not None and self.owed_s > 0:
            return self._serve(late_bulk, self._past_due(late_bulk), late_bulk)
        contest = min((c for c in self.contests if c.waits()), key=self._urgency, default=None)
        if contest is None:
            return None
        fair_s = self.fair_s.get(contest.tier, 0.0)
        fair_turn = fair_s >= 0
        contender = contest.least_served() if fair_turn else contest.most_urgent()
        if not fair_turn and contest.deadline_at == inf:  # all are late: then by turn
            contender = contest.least_served()
        if contender is not None:
            share = self.pool.fair_share - 1 if fair_turn else self.pool.fair_share
            self.fair_s[contest.tier] = fair_s + share * contender.head.audio_s
        return self._serve(contest, contender, late_bulk)

    def _urgency(self, contest: Contest) -> float:
        if contest.has_late and contest.tier is not Tier.BULK:
            return self.now_s
        return contest.deadline_at

    def _late_bulk(self) -> Contest | None:
        """The bulk tier, if any of it that waits is past due, offered or not."""
        for contest in self.contests:
            if contest.tier is Tier.BULK and contest.head_due_at <= self.now_s:
                return contest
        return None

    def _past_due(self, bulk: Contest) -> Contender | None:
        """Whose past-due bulk comes next: by turn, or else what has been due for longest."""
        for contender in (bulk.least_served(), bulk.longest_due()):
            if contender is not None and contender.head.due_at <= self.now_s:
                return contender
        return None

    def _serve(
        self, contest: Contest, contender: Contender | None, late_bulk: Contest | None
    ) -> Pick | None:
        if contender is None:
            return None
        past_due = contender.head.due_at <= self.now_s
        segment = contest.serve(contender)
        share = self.pool.late_bulk_share
        if contest is late_bulk and past_due:
            paid_s = (1 - share) * segment.audio_s
            # What bulk gets beyond its share is not held against it later.
            self.owed_s = max(self.owed_s - paid_s, -paid_s)
        else:
            self._owe(late_bulk, share * segment.audio_s)
        return Pick(contest.tier, contender.job.id, segment.index, segment.audio_s)

    def _owe(self, late_bulk: Contest | None, audio_s: float) -> None:
        if late_bulk is not None:
            self.owed_s = min(self.owed_s + audio_s, self.pool.forgiven_beyond_s)
