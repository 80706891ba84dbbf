"""Claims, leases, fencing and counters: the same behaviour on SQLite and on PostgreSQL."""

import time
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import update

from shared.jobs import JobState
from shared.ledger import abandoned, feeding, jobs, segment_records, segments, settling
from shared.ledger.database import Database
from shared.ledger.tables import job
from shared.segments import SegmentState
from tests.contract.ledger import story


def test_a_segment_goes_from_waiting_to_done_and_starts_its_parts_assembly(
    database: Database,
) -> None:
    job_id = story.planned_job(database)
    messages = story.feed(database)
    assert [m.index for m in messages] == [0, 1, 2]
    outcomes = [story.commit(database, story.must_claim(database, m)) for m in messages]
    assert [o.won for o in outcomes] == [True] * 3
    assert [o.step_id is not None for o in outcomes] == [False, False, True]
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert record.state is JobState.ASSEMBLING
    assert record.progress.segments_done == 3
    assert record.progress.audio_s == 3.0


def test_a_second_delivery_of_a_message_claims_nothing(database: Database) -> None:
    story.planned_job(database)
    [message, *_] = story.feed(database)
    assert story.claim(database, message) is not None
    assert story.claim(database, message) is None


def test_a_stale_dispatch_number_claims_nothing(database: Database) -> None:
    story.planned_job(database)
    old = story.feed(database)
    database.transact(lambda conn: feeding.take_back_lost(conn, old))
    new = story.feed(database)
    assert [m.dispatch_no for m in new] == [2, 2, 2]
    assert story.claim(database, old[0]) is None
    assert story.claim(database, new[0]) is not None


def test_of_many_claimants_exactly_one_wins(database: Database) -> None:
    story.planned_job(database)
    [message, *_] = story.feed(database)
    with ThreadPoolExecutor(12) as pool:
        claims = list(pool.map(lambda _: story.claim(database, message), range(24)))
    assert sum(c is not None for c in claims) == 1


def test_a_zombie_cannot_commit_after_its_segment_was_claimed_anew(database: Database) -> None:
    story.planned_job(database)
    [message, *_] = story.feed(database)
    zombie = story.must_claim(database, message, lease_s=0.01)
    time.sleep(0.05)
    heir = story.must_claim(database, message)
    assert heir.token == zombie.token + 1
    assert not story.commit(database, zombie).won
    assert story.commit(database, heir).won
    assert not story.commit(database, zombie).won


def test_the_newest_token_may_commit_late_so_that_a_slow_store_makes_progress(
    database: Database,
) -> None:
    job_id = story.planned_job(database)
    [message, *_] = story.feed(database)
    slow = story.must_claim(database, message, lease_s=0.01)
    time.sleep(0.05)
    assert len(database.transact(abandoned.take_back_expired)) == 1
    assert story.commit(database, slow).won
    again = story.feed(database)
    assert message.index not in [m.index for m in again]
    assert story.count(database, job_id) == story.Counted(remaining=2, open_rows=2)


def test_a_repeated_commit_counts_once(database: Database) -> None:
    job_id = story.planned_job(database)
    [message, *_] = story.feed(database)
    claimed = story.must_claim(database, message)
    assert story.commit(database, claimed).won
    assert story.commit(database, claimed).won
    assert story.count(database, job_id).remaining == 2


def test_a_renewed_lease_is_not_taken_back(database: Database) -> None:
    story.planned_job(database)
    [message, *_] = story.feed(database)
    claimed = story.must_claim(database, message, lease_s=0.01)
    time.sleep(0.05)
    assert database.transact(
        lambda conn: segments.renew(conn, claimed.job_id, claimed.index, claimed.token, lease_s=30)
    )
    assert database.transact(abandoned.take_back_expired) == []


def test_a_released_claim_burns_no_attempt_and_waits(database: Database) -> None:
    job_id = story.planned_job(database)
    [message, *_] = story.feed(database)
    claimed = story.must_claim(database, message)
    database.transact(
        lambda conn: segments.release(
            conn, job_id, claimed.index, claimed.token, delay_s=60, error="store away"
        )
    )
    [row, *_] = database.read(lambda conn: segment_records.page(conn, job_id, limit=1))
    assert (row.state, row.attempt, row.error) == (SegmentState.PENDING, 0, "store away")
    assert story.feed(database) == []  # the others are dispatched, this one waits its minute


def test_a_quarantined_segment_is_a_gap_and_its_part_goes_on(database: Database) -> None:
    job_id = story.planned_job(database)
    messages = story.feed(database)
    bad = story.must_claim(database, messages[0])
    gap = database.transact(
        lambda conn: settling.quarantine(conn, job_id, bad.index, bad.token, "crashed alone")
    )
    assert gap.won
    last = [story.commit(database, story.must_claim(database, m)) for m in messages[1:]][-1]
    assert last.step_id is not None
    progress = database.read(lambda conn: jobs.get(conn, "default", job_id)).progress
    assert (progress.segments_done, progress.segments_quarantined) == (2, 1)


def test_a_cancelled_job_takes_no_commit_and_gives_no_claim(database: Database) -> None:
    job_id = story.planned_job(database)
    messages = story.feed(database)
    held = story.must_claim(database, messages[0])
    database.transact(lambda conn: jobs.cancel(conn, "default", job_id))
    assert not story.commit(database, held).won
    assert story.claim(database, messages[1]) is None
    assert not database.transact(
        lambda conn: segments.renew(conn, job_id, held.index, held.token, lease_s=30)
    )
    assert story.count(database, job_id).open_rows == 0


def test_racing_commits_start_each_assembly_exactly_once(database: Database) -> None:
    job_id = story.planned_job(database, parts=6, per_part=5)
    claims = [story.must_claim(database, m) for m in story.feed(database)]
    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(lambda c: story.commit(database, c), claims + claims))
    started = [o.step_id for o in outcomes if o.step_id is not None]
    assert len(started) == len(set(started)) == 6
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert record.state is JobState.ASSEMBLING
    assert record.progress.segments_done == 30


def test_the_feeder_gives_the_earliest_due_first_and_never_one_twice(database: Database) -> None:
    story.planned_job(database, per_part=20)
    with ThreadPoolExecutor(8) as pool:
        fed = list(pool.map(lambda _: story.feed(database, limit=3), range(8)))
    numbers = [m.index for messages in fed for m in messages]
    assert sorted(numbers) == list(range(20))
    assert all([m.index for m in messages] == sorted(m.index for m in messages) for messages in fed)


def test_a_paused_job_is_not_fed(database: Database) -> None:
    story.planned_job(database)
    database.transact(lambda conn: conn.execute(update(job).values(paused=True)))
    assert story.feed(database) == []
    database.transact(lambda conn: conn.execute(update(job).values(paused=False)))
    assert len(story.feed(database)) == 3


def test_those_committed_together_count_each_for_itself(database: Database) -> None:
    job_id = story.planned_job(database, parts=3, per_part=2)
    claims = [story.must_claim(database, m) for m in story.feed(database)]
    stale = story.must_claim_anew(database, claims[1])
    outcomes = story.commit_all(database, [claims[5], claims[4], claims[1], claims[0], claims[2]])
    assert [o.won for o in outcomes] == [True, True, False, True, True]
    assert [o.step_id is not None for o in outcomes] == [True, False, False, False, False]
    assert story.count(database, job_id) == story.Counted(remaining=2, open_rows=2)
    again = story.commit_all(database, [claims[5], stale, claims[3]])
    assert [o.won for o in again] == [True, True, True]
    assert sum(o.step_id is not None for o in again) == 2
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert record.state is JobState.ASSEMBLING
    assert record.progress.audio_s == 6.0


def test_companies_that_end_the_same_parts_at_once_do_not_block_each_other(
    database: Database,
) -> None:
    job_id = story.planned_job(database, parts=4, per_part=6)
    claims = [story.must_claim(database, m) for m in story.feed(database)]
    companies = [claims[n::6][:: 1 if n % 2 else -1] for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda company: story.commit_all(database, company), companies))
    assert all(o.won for company in outcomes for o in company)
    assert sum(o.step_id is not None for company in outcomes for o in company) == 4
    assert story.count(database, job_id) == story.Counted(remaining=0, open_rows=0)
