"""The dispatch rules as stories: who goes first, and why."""

import json
from dataclasses import asdict, replace

import pytest

from shared.scheduling.choose import choose
from shared.scheduling.offer import PoolState, TenantShare, TierOffer, WaitingJob, WaitingSegment
from shared.scheduling.pools import POOLS, RUSH_POOL, SHARED_POOL, Pool, pool_of
from shared.tiers import Tier
from tests.unit.scheduling.waiting_room import Bounds, WaitingRoom

NOW = 10_000.0


def order(room: WaitingRoom, count: int = 10_000) -> list[str]:
    return [pick.job_id for pick in room.fill(count, now_s=NOW)]


def audio_by_job(room: WaitingRoom, picks: int) -> dict[str, float]:
    served: dict[str, float] = {}
    for pick in room.fill(picks, now_s=NOW):
        served[pick.job_id] = served.get(pick.job_id, 0.0) + pick.audio_s
    return served


def test_every_tier_has_its_pool_and_rush_has_one_to_itself() -> None:
    assert [pool_of(tier) for tier in Tier] == [RUSH_POOL, SHARED_POOL, SHARED_POOL]
    assert sorted(tier for pool in POOLS for tier in pool.tiers) == sorted(Tier)
    assert RUSH_POOL.tiers == (Tier.RUSH,)


def test_standard_that_is_due_earlier_goes_before_bulk() -> None:
    room = WaitingRoom()
    room.add("1-book", "A", Tier.BULK, due_at=NOW + 3_600)
    room.add("2-article", "A", Tier.STANDARD, due_at=NOW + 60)
    assert order(room) == ["2-article", "1-book"]


def test_bulk_that_is_due_earlier_goes_before_standard() -> None:
    room = WaitingRoom()
    room.add("1-article", "A", Tier.STANDARD, due_at=NOW + 60)
    room.add("2-book", "A", Tier.BULK, due_at=NOW + 30)
    assert order(room) == ["2-book", "1-article"]


def test_a_book_behind_its_pace_is_due_with_its_end_and_pushes_nobody_aside() -> None:
    room = WaitingRoom(pool=replace(SHARED_POOL, late_bulk_share=0.0))
    room.add("1-book", "A", Tier.BULK, due_at=NOW + 1_800, head_due_at=NOW - 600)
    room.add("2-article", "B", Tier.STANDARD, due_at=NOW + 60)
    assert order(room) == ["2-article", "1-book"]


def test_late_standard_work_still_goes_before_bulk_that_has_time() -> None:
    room = WaitingRoom()
    room.add("1-book", "A", Tier.BULK, due_at=NOW + 5)
    room.add("2-late", "A", Tier.STANDARD, due_at=NOW - 600)
    assert order(room) == ["2-late", "1-book"]


def test_late_bulk_gives_way_but_has_its_share_of_the_audio() -> None:
    room = WaitingRoom()
    room.add("late", "A", Tier.BULK, segments=500, due_at=NOW - 3_600)
    room.add("articles", "B", Tier.STANDARD, segments=500, due_at=NOW + 60)
    served = audio_by_job(room, 200)
    assert served["late"] == pytest.approx(0.1 * 200 * 6, abs=6)


def test_late_bulk_has_its_share_of_what_rush_takes_as_well() -> None:
    room = WaitingRoom()
    room.add("late", "A", Tier.BULK, segments=500, due_at=NOW - 3_600)
    room.add("articles", "B", Tier.STANDARD, segments=500, due_at=NOW + 60)
    rush_s = late_s = standard_s = 0.0
    for _ in range(50):
        rush_s += 540.0  # of a hundred sentences, ninety are rush: the pool has room for ten
        for pick in room.fill(10, now_s=NOW, elsewhere_s=rush_s):
            if pick.job_id == "late":
                late_s += pick.audio_s
            else:
                standard_s += pick.audio_s
    assert late_s / (rush_s + late_s + standard_s) == pytest.approx(0.1, abs=0.003)


def test_what_was_owed_to_late_bulk_is_forgotten_when_none_waits() -> None:
    room = WaitingRoom()
    room.add("late", "A", Tier.BULK, due_at=NOW - 1)
    room.add("articles", "B", Tier.STANDARD, segments=100, due_at=NOW + 60)
    room.fill(1, now_s=NOW, elsewhere_s=100_000.0)  # much is owed, but one segment is all there is
    room.fill(5, now_s=NOW, elsewhere_s=100_000.0)
    room.add("late again", "A", Tier.BULK, segments=50, due_at=NOW - 1)
    late = [p for p in room.fill(20, now_s=NOW, elsewhere_s=100_000.0) if p.tier is Tier.BULK]
    assert len(late) <= 3


def test_what_late_bulk_had_beyond_its_share_is_not_held_against_it() -> None:
    room = WaitingRoom()
    room.add("late", "A", Tier.BULK, segments=500, due_at=NOW - 1)
    room.fill(200, now_s=NOW)  # nothing else waits
    room.add("articles", "B", Tier.STANDARD, segments=500, due_at=NOW + 60)
    assert order(room, 100).count("late") >= 9


def test_tenants_with_late_bulk_share_what_it_gets() -> None:
    room = WaitingRoom()
    room.add("articles", "C", Tier.STANDARD, segments=500, due_at=NOW + 60)
    room.add("much", "A", Tier.BULK, segments=500, due_at=NOW - 3_600)
    room.add("less", "B", Tier.BULK, segments=500, due_at=NOW - 60)
    served = audio_by_job(room, 400)
    assert served["less"] == pytest.approx(served["much"], abs=12)


def test_where_the_next_turn_is_not_late_the_longest_due_goes_first() -> None:
    room = WaitingRoom()
    room.add("0-far", "Z", Tier.BULK, segments=100, due_at=NOW + 90_000)
    room.add("1-articles", "B", Tier.STANDARD, segments=100, due_at=NOW + 60)
    for n in range(2, 6):
        room.add(f"{n}-late", "A", Tier.BULK, due_at=NOW - 10 * n)
    room.shares[Tier.BULK, "A"] = TenantShare(turn_s=1_000.0)  # so its turn is far off
    late = [job_id for job_id in order(room, 60) if "late" in job_id]
    assert late == ["5-late", "4-late", "3-late", "2-late"]


def test_what_urgent_work_took_beyond_its_share_is_forgiven_but_for_a_minute() -> None:
    room = WaitingRoom()
    room.add("0-urgent", "A", segments=300, due_at=NOW + 60)
    room.add("1-book", "B", segments=2_000, due_at=NOW + 9_000)
    room.add("2-book", "C", segments=2_000, due_at=NOW + 9_001)
    while "0-urgent" in room.jobs:
        room.fill(10, now_s=NOW)
    room.add("3-later", "A", segments=500, due_at=NOW + 9_002)
    assert order(room, 180).count("3-later") >= 25


def test_a_newcomer_is_served_at_once_beside_a_flood() -> None:
    room = WaitingRoom()
    for n in range(1_000):
        room.add(f"flood{n:04d}", "A", due_at=NOW + 30)
    room.fill(100, now_s=NOW)
    room.add("newcomer", "B", due_at=NOW + 40)
    assert "newcomer" in order(room, 2)


def test_a_newcomer_with_much_to_say_gets_half_beside_a_flood() -> None:
    room = WaitingRoom()
    for n in range(1_000):
        room.add(f"flood{n:04d}", "A", due_at=NOW + 30)
    room.fill(100, now_s=NOW)
    room.add("newcomer", "B", segments=100, due_at=NOW + 400)
    assert order(room, 100).count("newcomer") == pytest.approx(50, abs=2)


def test_who_was_away_earns_nothing_by_it() -> None:
    room = WaitingRoom(pool=replace(SHARED_POOL, fair_share=1.0))
    room.add("b1", "B", due_at=NOW + 60)
    room.add("a1", "A", segments=500, due_at=NOW + 60)
    room.fill(400, now_s=NOW)  # B is served once and goes away
    room.add("b2", "B", segments=100, due_at=NOW + 60)
    assert order(room, 100).count("b2") == pytest.approx(50, abs=1)


def test_a_short_job_passes_its_own_tenants_book_that_is_far_behind() -> None:
    room = WaitingRoom()
    room.add("1-book", "A", segments=1_000, due_at=NOW + 9_000, head_due_at=NOW - 900)
    room.fill(50, now_s=NOW)
    room.add("2-note", "A", due_at=NOW + 12_000)
    assert "2-note" in order(room, 3)


def test_twice_the_weight_gets_twice_the_audio() -> None:
    room = WaitingRoom(pool=replace(SHARED_POOL, fair_share=1.0))
    room.add("heavy", "A", segments=400, weight=2.0)
    room.add("light", "B", segments=400)
    served = audio_by_job(room, 300)
    assert served["heavy"] == pytest.approx(2 * served["light"], rel=0.02)


def test_equal_deadlines_are_served_oldest_first() -> None:
    room = WaitingRoom()
    for n, tenant in enumerate("BACBACBAC"):
        room.add(f"{n}", tenant, due_at=NOW + 60)
    assert order(room) == list("012345678")


def test_one_tenants_jobs_with_equal_deadlines_are_first_in_first_out() -> None:
    room = WaitingRoom()
    for n in range(50):
        room.add(f"{n:02d}", due_at=NOW + 60)
    assert order(room) == [f"{n:02d}" for n in range(50)]


def test_no_room_and_nothing_waiting_are_both_answered_with_nothing() -> None:
    room = WaitingRoom()
    assert room.fill(10, now_s=NOW) == []
    room.add("a")
    assert room.fill(0, now_s=NOW) == []
    assert room.waiting() == 1


def test_a_window_that_is_overfull_gets_nothing() -> None:
    room = WaitingRoom()
    room.add("a")
    assert room.fill(-5, now_s=NOW) == []


def test_what_is_remembered_fits_into_json() -> None:
    room = WaitingRoom()
    room.add("late", "A", Tier.BULK, segments=9, due_at=NOW - 60)
    room.add("article", "B", segments=9, due_at=NOW + 60)
    room.fill(7, now_s=NOW, elsewhere_s=100.0)
    assert json.loads(json.dumps(asdict(room.state))) == {
        "tiers": {
            tier: {"clock_s": state.clock_s, "fair_s": state.fair_s}
            for tier, state in room.state.tiers.items()
        },
        "owed_s": room.state.owed_s,
        "elsewhere_s": 100.0,
    }


def test_an_offer_that_is_too_small_is_asked_for_again_and_loses_nothing() -> None:
    room = WaitingRoom(bounds=Bounds(urgent=1, tenants=1, jobs=1, heads=1))
    for n in range(20):
        room.add(f"{n:02d}", "ABC"[n % 3], segments=3, due_at=NOW + n)
    assert len(room.fill(60, now_s=NOW)) == 60


def test_equal_deadlines_keep_their_order_although_only_a_part_is_offered() -> None:
    room = WaitingRoom(pool=replace(SHARED_POOL, fair_share=0.001), bounds=Bounds(heads=1))
    for job_id in "012":
        room.add(job_id, segments=4, due_at=NOW + 60)
    assert order(room) == list("000011112222")


def test_an_urgent_job_that_was_not_offered_is_not_passed_over() -> None:
    room = WaitingRoom(
        pool=replace(SHARED_POOL, fair_share=0.001), bounds=Bounds(urgent=1, tenants=1, jobs=2)
    )
    for job_id, tenant, due_s in ("0", "A", 30), ("1", "A", 40), ("2", "B", 5), ("3", "C", 20):
        room.add(job_id, tenant, due_at=NOW + due_s)
    assert order(room) == ["0", "2", "3", "1"]  # one fair turn, then by deadline


def test_a_job_offered_twice_is_refused() -> None:
    job = WaitingJob("j", "A", NOW, [WaitingSegment(0, NOW, 6.0)])
    with pytest.raises(ValueError, match="twice"):
        choose(
            SHARED_POOL,
            [TierOffer(Tier.BULK, [job, job])],
            PoolState(),
            room=1,
            now_s=NOW,
        )


@pytest.mark.parametrize("audio_s", [0.0, -1.0, float("inf"), float("nan")])
def test_a_segment_must_have_a_length_to_be_charged(audio_s: float) -> None:
    with pytest.raises(ValueError, match="audio_s"):
        WaitingSegment(0, NOW, audio_s)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_a_weight_must_be_a_share(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        WaitingJob("j", "A", NOW, [WaitingSegment(0, NOW, 6.0)], weight=weight)


def test_a_job_that_waits_has_segments() -> None:
    with pytest.raises(ValueError, match="does not wait"):
        WaitingJob("j", "A", NOW, [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"fair_share": 0.0},
        {"fair_share": 1.1},
        {"late_bulk_share": 1.0},
        {"late_bulk_share": -0.1},
        {"forgiven_beyond_s": float("inf")},
        {"forgiven_beyond_s": -1.0},
    ],
)
def test_a_pools_shares_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Pool("p", (Tier.BULK,), **wrong)
