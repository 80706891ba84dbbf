"""What a tenant is having spoken just now is not spoken twice: on SQLite and on PostgreSQL."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import func, select, update

from shared.jobs import JobState
from shared.ledger import jobs, pausing, plans, segment_records, segments, taking_over
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.segment_records import SegmentRecord
from shared.ledger.segments import Claim
from shared.ledger.settling import Committed
from shared.messages import SynthMessage
from shared.steps import StepKind
from shared.tiers import Tier
from tests.contract.ledger import shelf, story


def job_of_tier(database: Database, tier: Tier, *, tenant: str = shelf.TENANT) -> str:
    """A planned job of three sentences of this tier that takes what is there."""
    job_id = story.submit(database, tenant=tenant, tier=tier)
    claimed = story.claim_step(database, job_id, StepKind.PLAN)
    described, rows = story.planned_rows(1, 3)
    database.transact(lambda conn: plans.start_planning(conn, job_id))
    database.transact(
        lambda conn: plans.open_rendering(conn, claimed, described, skipped=0, lease_s=30)
    )
    database.transact(
        lambda conn: plans.write_chunk(conn, claimed, tier, rows, lease_s=30, reuse_of=tenant)
    )
    database.transact(lambda conn: plans.finish_plan(conn, claimed))
    return job_id


def leased(database: Database, *indexes: int) -> list[Claim]:
    """A job of three sentences, of which these are being spoken."""
    story.planned_job(database)
    messages = story.feed(database)
    return [story.must_claim(database, messages[index]) for index in indexes]


def rows_of(database: Database, job_id: str) -> list[SegmentRecord]:
    return database.read(lambda conn: segment_records.page(conn, job_id, limit=100))


def followers(database: Database, job_id: str) -> list[int]:
    c = t.segment.c
    query = select(c.index).where(c.job_id == job_id, c.follows).order_by(c.index)
    return database.read(lambda conn: list(conn.execute(query).scalars()))


def take(database: Database, claimed: Claim) -> Committed | None:
    return database.transact(lambda conn: taking_over.take_over(conn, claimed))


def let_leases_run_out(database: Database) -> None:
    """As far as the followers know, which were told when that would be."""
    past = update(t.segment).where(t.segment.c.follows).values(not_before=1.0)
    database.transact(lambda conn: conn.execute(past))


def indexes(messages: Sequence[SynthMessage]) -> list[int]:
    return sorted(message.index for message in messages)


def test_a_leased_sentence_is_waited_for_and_taken_when_it_is_in(database: Database) -> None:
    leaders = leased(database, 0, 1)
    job_id = shelf.reusing_job(database)
    assert followers(database, job_id) == [0, 1]
    [own] = story.feed(database)  # what nobody has in hand is not waited for
    assert own.index == 2
    story.commit_all(database, leaders)
    messages = story.feed(database)
    assert indexes(messages) == [0, 1]
    for message in messages:
        claimed = story.must_claim(database, message)
        assert claimed.follows
        assert take(database, claimed) == Committed(won=True)
    own_claim = story.must_claim(database, own)
    assert not own_claim.follows
    assert story.commit(database, own_claim).step_id is not None
    record = database.read(lambda conn: jobs.get(conn, shelf.TENANT, job_id))
    assert (record.state, record.segments_reused) == (JobState.ASSEMBLING, 2)
    assert (record.progress.segments_done, record.progress.audio_s) == (3, 3.0)
    for row, leader in zip(rows_of(database, job_id), leaders, strict=False):
        assert row.object_key == story.audio_of(leader).object_key
    shelf.check_references(database)
    shelf.finish(database, job_id)
    shelf.delete(database, leaders[0].job_id)
    assert shelf.doomed(database) == []


def test_who_takes_the_last_sentence_sends_the_part_to_assembly(database: Database) -> None:
    leaders = leased(database, 0, 1, 2)
    job_id = shelf.reusing_job(database)
    story.commit_all(database, leaders)
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    outcomes = [take(database, claimed) for claimed in claims]
    assert [o is not None and o.step_id is not None for o in outcomes] == [False, False, True]
    shelf.finish(database, job_id)
    shelf.check_references(database)


def test_a_lease_that_brings_nothing_is_not_waited_for_any_longer(database: Database) -> None:
    [leader] = leased(database, 0)
    job_id = shelf.reusing_job(database)
    assert 0 not in indexes(story.feed(database))
    let_leases_run_out(database)
    [message] = story.feed(database)
    claimed = story.must_claim(database, message)
    assert take(database, claimed) is None
    assert story.commit(database, claimed).won
    assert story.commit(database, leader).won  # it was only slow
    row, *_ = rows_of(database, job_id)
    assert row.object_key == story.audio_of(claimed).object_key
    shelf.check_references(database)


def test_a_sentence_taken_after_it_was_given_back_is_not_the_head_any_more(
    database: Database,
) -> None:
    [leader] = leased(database, 0)
    job_id = shelf.reusing_job(database)
    let_leases_run_out(database)
    slow = story.must_claim(database, story.feed(database, limit=1)[0])
    given_back = (job_id, slow.index, slow.token)
    database.transact(
        lambda conn: segments.release(conn, *given_back, delay_s=0.0, error="the store is away")
    )
    assert story.commit(database, leader).won
    assert take(database, slow) == Committed(won=True)
    first = select(func.min(t.segment.c.due_at)).where(t.IS_PENDING, t.segment.c.job_id == job_id)
    head = select(t.job.c.head_due_at).where(t.job.c.id == job_id)
    assert database.read(lambda conn: conn.execute(head).scalar_one()) == database.read(
        lambda conn: conn.execute(first).scalar_one()
    )


@pytest.mark.parametrize("end", [JobState.CANCELLED, JobState.FAILED])
def test_a_leader_whose_job_ends_holds_its_followers_up_for_a_lease_at_most(
    database: Database, end: JobState
) -> None:
    [leader] = leased(database, 0)
    shelf.reusing_job(database)
    database.transact(lambda conn: jobs.end(conn, leader.job_id, end))
    assert not story.commit(database, leader).won
    let_leases_run_out(database)
    assert indexes(story.feed(database)) == [0, 1, 2]


def test_a_paused_job_is_not_followed(database: Database) -> None:
    [leader] = leased(database, 0)
    database.transact(lambda conn: pausing.pause(conn, shelf.TENANT, leader.job_id))
    assert followers(database, shelf.reusing_job(database)) == []


def test_a_lease_that_has_run_out_is_not_followed(database: Database) -> None:
    leased(database, 0)
    past = update(t.segment).values(lease_until=1.0)
    database.transact(lambda conn: conn.execute(past))
    assert followers(database, shelf.reusing_job(database)) == []


def test_another_tenants_lease_is_never_followed_nor_its_commit_felt(database: Database) -> None:
    leaders = leased(database, 0, 1, 2)
    other = shelf.reusing_job(database, tenant="other")
    assert followers(database, other) == []
    waits = {"follows": True, "not_before": 4e9}
    mine = t.segment.c.job_id == other
    database.transact(lambda conn: conn.execute(update(t.segment).where(mine).values(waits)))
    story.commit_all(database, leaders)
    assert story.feed(database) == []
    let_leases_run_out(database)
    for message in story.feed(database):
        assert take(database, story.must_claim(database, message)) is None


@pytest.mark.parametrize(
    ("leading", "following", "waits"),
    [
        (Tier.STANDARD, Tier.RUSH, False),
        (Tier.BULK, Tier.STANDARD, False),
        (Tier.BULK, Tier.BULK, True),
        (Tier.RUSH, Tier.RUSH, True),
        (Tier.RUSH, Tier.STANDARD, True),
        (Tier.STANDARD, Tier.BULK, True),
    ],
)
def test_nobody_waits_for_a_slower_tier(
    database: Database, leading: Tier, following: Tier, *, waits: bool
) -> None:
    job_id = job_of_tier(database, leading)
    lease = {"state": "leased", "dispatch_no": 1, "token": 1, "lease_until": 4e9}
    mine = t.segment.c.job_id == job_id
    database.transact(lambda conn: conn.execute(update(t.segment).where(mine).values(lease)))
    assert followers(database, job_of_tier(database, following)) == ([0, 1, 2] if waits else [])


def test_a_job_that_wants_new_audio_follows_nobody(database: Database) -> None:
    leased(database, 0, 1, 2)
    assert followers(database, story.planned_job(database)) == []


def test_taking_over_again_counts_once_and_a_stale_claim_takes_nothing(
    database: Database,
) -> None:
    [leader] = leased(database, 0)
    job_id = shelf.reusing_job(database, per_part=1)
    story.commit(database, leader)
    [message] = [m for m in story.feed(database) if m.job_id == job_id]
    zombie = story.must_claim(database, message)
    heir = story.must_claim_anew(database, zombie)
    assert take(database, zombie) == Committed(won=False)
    taken = take(database, heir)
    assert taken is not None
    assert taken.step_id is not None
    assert take(database, heir) == Committed(won=True)
    assert story.claim(database, message) is None
    record = database.read(lambda conn: jobs.get(conn, shelf.TENANT, job_id))
    assert (record.segments_reused, record.progress.segments_done) == (1, 1)
    shelf.check_references(database)


def test_audio_that_is_being_deleted_is_not_taken(database: Database) -> None:
    [leader] = leased(database, 0)
    job_id = shelf.reusing_job(database, per_part=1)
    story.commit(database, leader)
    [message] = [m for m in story.feed(database) if m.job_id == job_id]
    claimed = story.must_claim(database, message)
    shelf.delete(database, leader.job_id)
    assert shelf.doomed(database) == [story.audio_of(leader).object_key]
    assert take(database, claimed) is None
    assert story.commit(database, claimed).won
    shelf.check_references(database)


def test_a_follower_that_was_released_still_looks_first(database: Database) -> None:
    [leader] = leased(database, 0)
    job_id = shelf.reusing_job(database, per_part=1)
    let_leases_run_out(database)
    [message] = [m for m in story.feed(database) if m.job_id == job_id]
    early = story.must_claim(database, message)
    assert take(database, early) is None
    where = (job_id, 0, early.token)
    database.transact(lambda conn: segments.release(conn, *where, delay_s=0.0, error="away"))
    story.commit(database, leader)
    [message] = [m for m in story.feed(database) if m.job_id == job_id]
    assert take(database, story.must_claim(database, message)) is not None


def test_leaders_followers_and_deletions_at_once_keep_every_count_right(
    database: Database,
) -> None:
    for _ in range(4):
        leaders = leased(database, 0, 1, 2)
        follower = shelf.reusing_job(database)
        let_leases_run_out(database)
        claims = [story.must_claim(database, m) for m in story.feed(database)]
        assert len(claims) == 3
        start = Barrier(5)

        def lead(leaders: list[Claim] = leaders, start: Barrier = start) -> None:
            start.wait()
            story.commit_all(database, leaders)

        def follow(claimed: Claim, start: Barrier = start) -> None:
            start.wait()
            if take(database, claimed) is None:
                story.commit(database, claimed)

        def plan(start: Barrier = start) -> str:
            start.wait()
            return shelf.reusing_job(database)

        with ThreadPoolExecutor(5) as pool:
            running = [pool.submit(lead), *(pool.submit(follow, c) for c in claims)]
            third = pool.submit(plan)
            for done in running:
                done.result()
        shelf.check_references(database)
        let_leases_run_out(database)
        shelf.render_rest(database)
        for job_id in (leaders[0].job_id, follower, third.result()):
            assert story.count(database, job_id) == story.Counted(remaining=0, open_rows=0)
            shelf.delete(database, job_id)
        shelf.check_references(database)
        shelf.doomed(database)
