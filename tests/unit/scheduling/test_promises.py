"""What holds whatever waits: nothing idle, nothing twice, nothing starved, shares kept."""

from dataclasses import replace
from itertools import accumulate
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.scheduling.choose import choose
from shared.scheduling.offer import Pick, Rest
from shared.scheduling.pools import RUSH_POOL, SHARED_POOL, Pool
from shared.tiers import Tier
from tests.unit.scheduling.waiting_room import Bounds, WaitingRoom

NOW = 10_000.0
LONGEST_S = 20.0  # of any segment's audio

# A busy machine is no failure of the policy.
anytime = settings(deadline=None)

moments = st.integers(-5_000, 20_000).map(lambda offset: NOW + offset)
lengths = st.integers(1, 40).map(lambda half_s: half_s / 2)
bounds = st.builds(
    Bounds,
    urgent=st.integers(1, 6),
    tenants=st.integers(1, 3),
    jobs=st.integers(1, 3),
    heads=st.integers(1, 4),
)


@st.composite
def shared_rooms(draw: st.DrawFn, *, most_jobs: int = 14) -> WaitingRoom:
    """Any mixture of standard and bulk, of a few tenants, offered in any bounds."""
    room = WaitingRoom(bounds=draw(bounds))
    for n in range(draw(st.integers(0, most_jobs))):
        head, end = sorted((draw(moments), draw(moments)))
        room.add(
            f"{n:02d}",
            draw(st.sampled_from("ABCDE")),
            draw(st.sampled_from([Tier.STANDARD, Tier.BULK])),
            segments=draw(st.integers(1, 6)),
            head_due_at=head,
            due_at=end,
            audio_s=draw(lengths),
            weight=draw(st.sampled_from([0.5, 1.0, 3.0])),
        )
    return room


@anytime
@given(shared_rooms(), st.lists(st.integers(0, 20), max_size=6))
def test_room_is_filled_while_anything_waits_and_never_overfilled(
    room: WaitingRoom, sizes: list[int]
) -> None:
    for size in sizes:
        waiting = room.waiting()
        assert len(room.fill(size, now_s=NOW)) == min(size, waiting)


@anytime
@given(shared_rooms())
def test_everything_is_sent_once_and_in_order_inside_each_job(room: WaitingRoom) -> None:
    expected = {(job.id, s.index) for job in room.jobs.values() for s in job.segments}
    picks = [pick for _ in range(100) for pick in room.fill(7, now_s=NOW)]
    assert len(picks) == len(expected)
    assert {(pick.job_id, pick.index) for pick in picks} == expected
    for job_id in {pick.job_id for pick in picks}:
        indexes = [pick.index for pick in picks if pick.job_id == job_id]
        assert indexes == sorted(indexes)


@anytime
@given(shared_rooms(), st.randoms(use_true_random=False), st.integers(1, 20))
def test_the_choice_depends_on_what_is_offered_and_not_on_its_order(
    room: WaitingRoom, shuffler: object, size: int
) -> None:
    offers = room.offers(NOW)
    mixed = []
    for offer in offers:
        jobs = list(offer.jobs)
        shuffler.shuffle(jobs)  # type: ignore[attr-defined]
        mixed.append(replace(offer, jobs=jobs))
    first, second = (
        choose(SHARED_POOL, some, room.state, room=size, now_s=NOW) for some in (offers, mixed)
    )
    assert first == second


@anytime
@given(
    shared_rooms(),
    st.lists(st.one_of(moments, st.just(-inf), st.just(inf)), min_size=4, max_size=4),
    st.integers(1, 9),
)
def test_marks_that_are_wrong_cost_order_but_never_a_standstill(
    room: WaitingRoom, marks: list[float], size: int
) -> None:
    offers = room.offers(NOW)
    deadline_at, head_due_at, tenant_turn_s, job_turn_s = marks
    rest = Rest(deadline_at, head_due_at, tenant_turn_s, dict.fromkeys("ABCDE", job_turn_s))
    wrong = [replace(offer, rest=rest) for offer in offers]
    choice = choose(SHARED_POOL, wrong, room.state, room=size, now_s=NOW)
    assert bool(choice.picks) == bool(offers)


def normalised(picks: list[Pick], weights: dict[str, float]) -> dict[str, list[float]]:
    """For each job the audio per weight that it had after each pick, from zero."""
    return {
        job_id: list(
            accumulate(
                (pick.audio_s / weight if pick.job_id == job_id else 0.0 for pick in picks),
                initial=0.0,
            )
        )
        for job_id, weight in weights.items()
    }


owners = st.lists(
    st.tuples(lengths, st.sampled_from([0.5, 1.0, 2.0]), moments), min_size=2, max_size=5
)


@anytime
@given(owners, bounds, st.lists(st.integers(1, 12), min_size=1, max_size=10), st.booleans())
def test_by_turns_alone_no_two_drift_apart_by_more_than_a_segment_of_each(
    owners: list[tuple[float, float, float]],
    bounds: Bounds,
    sizes: list[int],
    one_tenant: bool,  # noqa: FBT001 - the same holds between tenants and between jobs of one
) -> None:
    room = WaitingRoom(pool=RUSH_POOL, bounds=bounds)
    for n, (audio_s, weight, due_at) in enumerate(owners):
        tenant = "A" if one_tenant else f"T{n}"
        room.add(
            f"{n}", tenant, Tier.RUSH, segments=200, due_at=due_at, audio_s=audio_s, weight=weight
        )
    picks = [pick for size in sizes for pick in room.fill(size, now_s=NOW)]
    had = normalised(picks, {f"{n}": owner[1] for n, owner in enumerate(owners)})
    longest = {f"{n}": owner[0] / owner[1] for n, owner in enumerate(owners)}
    for one, other in ((a, b) for a in had for b in had if a != b):
        # Start-time fair queueing: in no interval do two that wait differ by more than this.
        drift = [a - b for a, b in zip(had[one], had[other], strict=True)]
        assert max(drift) - min(drift) <= longest[one] + longest[other] + 1e-6


@anytime
@given(owners, bounds, st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 3))
def test_tenants_with_many_small_jobs_share_as_evenly(
    owners: list[tuple[float, float, float]], bounds: Bounds, sizes: list[int], segments: int
) -> None:
    room = WaitingRoom(pool=RUSH_POOL, bounds=bounds)
    for n, (audio_s, _, due_at) in enumerate(owners):
        for k in range(80):
            job_id = f"{k:02d}.{n}"
            room.add(job_id, f"T{n}", Tier.RUSH, segments=segments, due_at=due_at, audio_s=audio_s)
    picks = [pick for size in sizes for pick in room.fill(size, now_s=NOW)]
    by_tenant = [replace(pick, job_id=pick.job_id[3:]) for pick in picks]
    had = normalised(by_tenant, {f"{n}": 1.0 for n in range(len(owners))})
    for one, other in ((a, b) for a in had for b in had if a != b):
        drift = [a - b for a, b in zip(had[one], had[other], strict=True)]
        limit = owners[int(one)][0] + owners[int(other)][0]
        assert max(drift) - min(drift) <= limit + 1e-6


@anytime
@given(shared_rooms(), st.lists(st.integers(1, 5), min_size=1, max_size=20))
def test_urgent_turns_go_to_the_earliest_deadline_however_little_is_offered(
    room: WaitingRoom, sizes: list[int]
) -> None:
    room.pool = replace(SHARED_POOL, fair_share=1e-6)  # after one fair turn, all are urgent ones
    ahead = {key: job for key, job in room.jobs.items() if job.head_due_at > NOW}
    room.jobs = {key: job for key, job in ahead.items() if job.tier is Tier.STANDARD}
    heads = {(key, s.index): s.due_at for key, j in room.jobs.items() for s in j.segments}
    picks = [pick for size in sizes for pick in room.fill(size, now_s=NOW)][1:]
    due = [heads[pick.job_id, pick.index] for pick in picks]
    assert due == sorted(due)


@anytime
@given(owners, bounds, st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_whatever_the_deadlines_nobody_loses_more_than_the_urgent_part(
    owners: list[tuple[float, float, float]], bounds: Bounds, sizes: list[int]
) -> None:
    pool = SHARED_POOL
    room = WaitingRoom(pool=pool, bounds=bounds)
    for n, (audio_s, _, due_at) in enumerate(owners):
        room.add(f"{n}", f"T{n}", segments=300, due_at=due_at, audio_s=audio_s)
    picks = [pick for size in sizes for pick in room.fill(size, now_s=NOW)]
    total_s = [0.0, *accumulate(pick.audio_s for pick in picks)]
    allowed_s = pool.forgiven_beyond_s + 3 * LONGEST_S
    for had in normalised(picks, {f"{n}": 1.0 for n in range(len(owners))}).values():
        share = pool.fair_share / len(owners)
        behind = [share * total - mine for total, mine in zip(total_s, had, strict=True)]
        for start in range(0, len(behind), 7):
            assert max(behind[start:]) - behind[start] <= allowed_s


@anytime
@given(shared_rooms(), moments, st.integers(1, 9))
def test_a_newcomer_is_served_within_a_turn_of_each_other_tenant(
    room: WaitingRoom, due_at: float, first: int
) -> None:
    room.pool = replace(SHARED_POOL, fair_share=1.0)
    room.jobs = {key: job for key, job in room.jobs.items() if job.tier is Tier.STANDARD}
    room.fill(first, now_s=NOW)
    others = {job.tenant for job in room.jobs.values()}
    room.add("newcomer", "Z", due_at=due_at)
    assert "newcomer" in {pick.job_id for pick in room.fill(len(others) + 1, now_s=NOW)}


@anytime
@given(
    late_audio_s=lengths,
    others=st.lists(st.tuples(lengths, moments), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    share=st.sampled_from([0.1, 0.25]),
    bounds=bounds,
)
def test_late_bulk_has_its_share_in_every_interval_in_which_it_waits(
    late_audio_s: float,
    others: list[tuple[float, float]],
    sizes: list[int],
    share: float,
    bounds: Bounds,
) -> None:
    room = WaitingRoom(pool=replace(SHARED_POOL, late_bulk_share=share), bounds=bounds)
    room.add("late", "L", Tier.BULK, segments=300, due_at=NOW - 1, audio_s=late_audio_s)
    for n, (audio_s, due_at) in enumerate(others):
        tier = Tier.BULK if n % 2 else Tier.STANDARD
        at = max(due_at, NOW + 1) if tier is Tier.BULK else due_at
        room.add(f"{n}", f"T{n}", tier, segments=300, due_at=at, audio_s=audio_s)
    picks = [pick for size in sizes for pick in room.fill(size, now_s=NOW)]
    missing = list(
        accumulate(
            (share * p.audio_s - (p.audio_s if p.job_id == "late" else 0.0) for p in picks),
            initial=0.0,
        )
    )
    for start, begun in enumerate(missing):
        assert max(missing[start:]) - begun <= LONGEST_S + 1e-6


@settings(deadline=None, max_examples=30)
@given(
    pool=st.sampled_from([SHARED_POOL, RUSH_POOL]),
    crowd=st.integers(1, 4),
    waits_s=st.integers(1, 300),
    data=st.data(),
)
def test_nothing_starves_while_urgent_work_never_ceases_to_arrive(
    pool: Pool, crowd: int, waits_s: int, data: st.DataObject
) -> None:
    room = WaitingRoom(pool=pool)
    tier = data.draw(st.sampled_from(pool.tiers))
    room.add("patient", "P", tier, segments=3, due_at=NOW + waits_s)
    urgent = pool.tiers[0]
    # Each second the crowd sends twice as much as is served, all of it due before the patient's.
    for second in range(waits_s + 10 * (crowd + 1) * 20):
        now_s = NOW + second
        if "patient" not in room.jobs:
            break
        if second % 10 == 0:
            for n in range(crowd):
                job_id = f"{second:05d}.{n}"
                room.add(job_id, f"C{n}", urgent, segments=20 // crowd, due_at=now_s + 1)
        room.fill(1, now_s=now_s)
    assert "patient" not in room.jobs
