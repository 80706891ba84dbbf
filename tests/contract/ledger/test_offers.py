"""What the ledger offers is what plain Python would pick of the same rows, on both databases."""

import random
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from math import inf
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from shared.jobs import JobState
from shared.ledger import feeding, jobs, offers, pausing, segments
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.messages import SynthMessage
from shared.scheduling.offer import Rest, TenantShare, TierOffer, WaitingJob, WaitingSegment
from shared.scheduling.pools import SHARED_POOL
from shared.segments import SegmentState
from shared.tiers import Tier
from tests.contract.ledger import story
from tests.factories import waiting_job, waiting_segment
from tests.unit.scheduling.waiting_room import Job, WaitingRoom

Row = dict[str, Any]
FEW = 14  # of every kind of tie there are some: of turns, of due times, of tenants never served


def rows_of_jobs(rng: random.Random, now: float, count: int) -> tuple[list[Row], list[Row]]:
    """Jobs and segments in every state; due times are far from now, prices are whole seconds."""
    rows, segments = [], []
    for number in range(count):
        job_id, tier = f"{number:026d}", rng.choice((Tier.STANDARD, Tier.BULK))
        due_at = now + 1_000.0 * rng.randint(-FEW, FEW) + 500
        paused = rng.random() < 0.1
        rows.append(
            waiting_job(
                job_id,
                tenant=f"tenant{min(rng.randrange(FEW), rng.randrange(FEW)):02d}",
                tier=tier,
                state=rng.choices((JobState.RENDERING, JobState.CANCELLED), (9, 1))[0],
                paused=paused,
                paused_at=now if paused else None,
                due_at=due_at,
                turn_s=float(rng.choice((0, 0, rng.randint(0, 40)))),
            )
        )
        segments += [
            waiting_segment(
                job_id,
                index,
                tier=tier,
                chars=15 * rng.randint(1, 8),
                due_at=due_at - 1_000.0 * rng.randint(0, FEW),
                not_before=rng.choices((0.0, now + 3_600), (9, 1))[0],
                state=rng.choices((SegmentState.PENDING, SegmentState.DISPATCHED), (9, 1))[0],
            )
            for index in range(rng.randint(1, 9))
        ]
    return rows, segments


def write(conn: Connection, rows: list[Row], segments: list[Row], shares: list[Row]) -> None:
    conn.execute(t.job.insert(), rows)
    conn.execute(t.segment.insert(), segments)
    conn.execute(t.tenant_share.insert(), shares)
    offers.refresh_heads(conn, [row["id"] for row in rows])


def shares_of_some(rng: random.Random) -> list[Row]:
    return [
        {"tier": tier, "tenant": f"tenant{number:02d}", "turn_s": turn_s, "clock_s": turn_s / 2}
        for tier in (Tier.STANDARD, Tier.BULK)
        for number in range(0, FEW, 2)
        for turn_s in [float(rng.randint(0, 5))]
    ]


def picked(
    tier: Tier, ledger: tuple[list[Row], list[Row], list[Row]], room: int, now: float
) -> TierOffer:
    """The rules of an offer, once more, with every list sorted whole."""
    rows, segments, shares = ledger
    pending = defaultdict(list)
    for segment in segments:
        if segment["state"] == SegmentState.PENDING:
            pending[segment["job_id"]].append(segment)
    heads = {job_id: min(s["due_at"] for s in mine) for job_id, mine in pending.items()}
    kept = {share["tenant"]: share for share in shares if share["tier"] == tier}
    waiting = [
        row
        for row in rows
        if (row["tier"], row["state"], row["paused"]) == (tier, JobState.RENDERING, False)
        and row["id"] in heads
    ]

    def head(row: Row) -> tuple[float, str]:
        return heads[row["id"]], row["id"]

    def turn(tenant: str) -> tuple[float, str]:
        return kept[tenant]["turn_s"] if tenant in kept else 0.0, tenant

    limit = min(room, offers.URGENT_JOBS)
    chosen, rest = {row["id"]: row for row in waiting}, Rest()
    if len(waiting) > limit:
        by_head = sorted(waiting, key=head)
        on_pace = [row for row in by_head if heads[row["id"]] > now]
        in_time = sorted(
            (row for row in waiting if row["due_at"] > now), key=lambda r: (r["due_at"], r["id"])
        )
        urgent = [*by_head[:limit], *on_pace[:limit], *in_time[:limit]]
        chosen = {row["id"]: row for row in urgent}
        tenants = sorted({row["tenant"] for row in waiting}, key=turn)
        few = min(room, offers.TENANTS)
        each = min(room, max(offers.JOBS_OF_A_TENANT, room // len(tenants[:few])))
        turns = {row["tenant"]: -inf for row in urgent}
        for tenant in tenants[:few]:
            mine = sorted(
                (row for row in waiting if row["tenant"] == tenant),
                key=lambda row: (row["turn_s"], *head(row)),
            )
            chosen |= {row["id"]: row for row in mine[:each]}
            turns[tenant] = mine[each]["turn_s"] if len(mine) > each else inf
        left = [heads[row["id"]] for row in on_pace[limit:]]
        left += [row["due_at"] for row in in_time[limit:]]
        rest = Rest(
            deadline_at=min(left, default=inf),
            head_due_at=heads[by_head[limit]["id"]],
            tenant_turn_s=turn(tenants[few])[0] if len(tenants) > few else inf,
            job_turn_s=turns,
        )
    most = max(2, -(-2 * room // max(1, len(chosen))))
    offered = []
    for row in chosen.values():
        ready = sorted(
            (s["due_at"], s["index"], s["chars"] / offers.CHARS_PER_AUDIO_S)
            for s in pending[row["id"]]
            if s["not_before"] <= now
        )
        if ready:
            first = [WaitingSegment(index, due_at, s) for due_at, index, s in ready[:most]]
            more = len(ready) > most
            offered.append(
                WaitingJob(row["id"], row["tenant"], row["due_at"], first, more, 1.0, row["turn_s"])
            )
    names = {row["tenant"] for row in chosen.values()} & kept.keys()
    return TierOffer(
        tier,
        jobs=sorted(offered, key=lambda job: job.id),
        tenants={n: TenantShare(kept[n]["turn_s"], kept[n]["clock_s"]) for n in names},
        rest=rest,
    )


@pytest.mark.parametrize("seed", range(3))
def test_an_offer_is_what_plain_python_picks_of_the_same_rows(
    database: Database, seed: int
) -> None:
    rng = random.Random(seed)
    now = database.read(read_clock)
    rows, segments = rows_of_jobs(rng, now, 300)
    shares = shares_of_some(rng)
    database.transact(lambda conn: write(conn, rows, segments, shares))
    for tier in (Tier.STANDARD, Tier.BULK, Tier.RUSH):
        for room in (1, 2, 5, 9, 12, 40, 1_000):
            offered = database.read(lambda conn: offers.offer(conn, tier, room, now))  # noqa: B023
            by_id = sorted(offered.jobs, key=lambda job: job.id)
            found = TierOffer(tier, by_id, offered.tenants, offered.rest)
            assert found == picked(tier, (rows, segments, shares), room, now)


@pytest.mark.parametrize("seed", range(3))
def test_windows_fill_in_the_order_that_the_policy_chooses_with_all_in_sight(
    database: Database, seed: int
) -> None:
    rng = random.Random(seed)
    now = database.read(read_clock)
    rows, segments = rows_of_jobs(rng, now, 60)
    segments = [s | {"not_before": 0.0, "state": SegmentState.PENDING} for s in segments]
    database.transact(lambda conn: write(conn, rows, segments, shares_of_some(random.Random(0))))
    room = WaitingRoom()
    for share in shares_of_some(random.Random(0)):
        key = (share["tier"], share["tenant"])
        room.shares[key] = TenantShare(share["turn_s"], share["clock_s"])
    for row in rows:
        mine = sorted(
            (s["due_at"], s["index"], s["chars"]) for s in segments if s["job_id"] == row["id"]
        )
        if row["state"] == JobState.RENDERING and not row["paused"]:
            waiting = [WaitingSegment(i, due_at, chars / 15) for due_at, i, chars in mine]
            room.jobs[row["id"]] = Job(
                row["id"], row["tenant"], row["tier"], row["due_at"], waiting, 1.0, row["turn_s"]
            )
    while room.waiting():
        size = rng.choice((60, 75))  # as many as there are jobs: ties are seen whole
        sent = database.transact(lambda conn: feeding.fill(conn, SHARED_POOL, size))  # noqa: B023
        expected = [(pick.job_id, pick.index) for pick in room.fill(size, now_s=now)]
        assert [(message.job_id, message.index) for message in sent] == expected
    assert database.transact(lambda conn: feeding.fill(conn, SHARED_POOL, 8)) == []


def test_a_job_that_stands_still_has_no_head_whatever_happens_to_its_segments(
    database: Database,
) -> None:
    job_id = story.planned_job(database, per_part=2)
    [message, _] = story.feed(database)
    claimed = story.must_claim(database, message)
    database.transact(lambda conn: pausing.pause(conn, "default", job_id))
    database.transact(
        lambda conn: conn.execute(
            update(t.segment)
            .where(t.segment.c.index == claimed.index)
            .values(state=SegmentState.PENDING)
        )
    )
    database.transact(lambda conn: offers.refresh_heads(conn, [job_id]))
    head = select(t.job.c.head_due_at).where(t.job.c.id == job_id)
    assert database.transact(offers.find_forgotten) == 0
    assert database.read(lambda conn: conn.execute(head).scalar_one()) is None
    database.transact(lambda conn: pausing.resume(conn, "default", job_id))
    assert database.read(lambda conn: conn.execute(head).scalar_one()) is not None
    assert len(story.feed(database)) == 2
    assert database.read(lambda conn: jobs.get(conn, "default", job_id)).paused_at is None


def head_due_at(database: Database, job_id: str) -> float | None:
    head = select(t.job.c.head_due_at).where(t.job.c.id == job_id)
    return database.read(lambda conn: conn.execute(head).scalar_one())


def test_a_late_commit_of_the_first_that_waits_makes_the_next_one_the_head(
    database: Database,
) -> None:
    job_id = story.planned_job(database, per_part=2)
    slow = story.must_claim(database, story.feed(database, limit=1)[0])
    database.transact(
        lambda conn: segments.release(
            conn, job_id, slow.index, slow.token, delay_s=0.0, error="the store is away"
        )
    )
    assert head_due_at(database, job_id) == 1_000.0
    assert story.commit(database, slow).won
    assert head_due_at(database, job_id) == 1_001.0


def test_two_who_change_what_waits_at_once_leave_the_right_head(database: Database) -> None:
    """given one who gives a segment back / when another sends the rest before that is committed"""
    job_id = story.planned_job(database, per_part=2)
    held = story.must_claim(database, story.feed(database, limit=1)[0])
    with ThreadPoolExecutor(1) as other:

        def give_back(conn: Connection) -> Future[list[SynthMessage]]:
            given_back = (conn, job_id, held.index, held.token)
            assert segments.release(*given_back, delay_s=60.0, error="the store is away")
            sending = other.submit(story.feed, database)
            wait([sending], timeout=0.5)  # it cannot end before this does, if it locks at all
            return sending

        sent = database.transact(give_back).result()
    assert [message.index for message in sent] == [1]
    assert head_due_at(database, job_id) == 1_000.0, "a job with a waiting segment has a head"
