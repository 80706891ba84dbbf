"""Leases that nobody gives back: what they say about a sentence, on both databases."""

import pytest
from sqlalchemy import update

from shared.jobs import Fallback
from shared.ledger import abandoned, blame, jobs, retrying, segment_records, segments
from shared.ledger import tables as t
from shared.ledger.abandoned import Lost
from shared.ledger.blame import Blame
from shared.ledger.database import Database
from shared.ledger.giving_up import give_up
from shared.ledger.segments import Claim
from tests.contract.ledger import story


def leases_run_out(database: Database) -> list[Lost]:
    database.transact(
        lambda conn: conn.execute(
            update(t.segment).where(t.segment.c.state == "leased").values(lease_until=1.0)
        )
    )
    return database.transact(abandoned.take_back_expired)


def claim_next(database: Database) -> Claim:
    [message] = story.feed(database, 1)
    return story.must_claim(database, message)


def stand_alone(database: Database, claimed: Claim, *, alone: bool = True) -> bool:
    return database.transact(
        lambda conn: blame.stand_alone(conn, claimed, alone=alone, lease_s=story.LEASE_S)
    )


def die_alone(database: Database) -> list[Lost]:
    assert stand_alone(database, claim_next(database))
    return leases_run_out(database)


def forgive(database: Database, claimed: Claim) -> None:
    database.transact(lambda conn: blame.forgive(conn, claimed))


def test_two_in_a_row_make_a_suspect_and_no_number_of_them_a_crash(database: Database) -> None:
    story.planned_job(database, per_part=1)
    suspected = []
    for _ in range(8):
        suspected.append(claim_next(database).suspect)
        assert [lost.crashes for lost in leases_run_out(database)] == [0]
    assert suspected == [False, False, *[True] * 6]
    assert claim_next(database).crashes == 0


def test_a_message_that_comes_again_after_the_lease_is_a_loss_too(database: Database) -> None:
    story.planned_job(database, per_part=1)
    first = claim_next(database)
    assert not story.must_claim_anew(database, first).suspect
    assert story.must_claim_anew(database, first).suspect


def test_one_lost_alone_is_left_to_the_scheduler_who_counts_it(database: Database) -> None:
    story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    assert stand_alone(database, story.must_claim(database, message))
    database.transact(lambda conn: conn.execute(update(t.segment).values(lease_until=1.0)))
    assert story.claim(database, message) is None
    assert [lost.crashes for lost in database.transact(abandoned.take_back_expired)] == [1]


def test_deaths_alone_are_crashes_and_the_sentence_becomes_a_named_gap(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    for deaths in (1, 2, 3):
        [lost] = die_alone(database)
        assert lost.crashes == deaths
    where = (lost.job_id, lost.index, lost.token)
    given_up = database.transact(lambda conn: give_up(conn, *where, "it takes all down"))
    assert given_up.won
    assert given_up.step_id is not None
    [row] = database.read(lambda conn: segment_records.page(conn, job_id, limit=9))
    assert (row.state, row.error) == ("quarantined", "it takes all down")
    again = database.transact(lambda conn: give_up(conn, *where, "a second scheduler"))
    assert not again.won


def test_a_job_that_wants_no_gap_fails(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1, on_error="fail")
    [lost] = die_alone(database)
    where = (lost.job_id, lost.index, lost.token)
    assert database.transact(lambda conn: give_up(conn, *where, "it takes all down")).won
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert (record.state, record.error_code) == ("failed", "segment-failed")


def test_the_fallback_engine_gets_it_with_a_clean_record(database: Database) -> None:
    second = Fallback(engine="second", version="2", backend="numpy", voice="b")
    job_id = story.submit(database, fallback=second.model_dump())
    story.plan(database, job_id, per_part=1)
    for _ in range(3):
        [lost] = die_alone(database)
    where = (lost.job_id, lost.index, lost.token)
    assert database.transact(lambda conn: give_up(conn, *where, "it takes all down")).won
    claimed = claim_next(database)
    assert (claimed.engine, claimed.crashes, claimed.suspect) == ("second", 0, False)
    assert [lost.crashes for lost in leases_run_out(database)] == [0]
    assert not claim_next(database).suspect


def test_somebody_who_has_it_meanwhile_may_speak_it(database: Database) -> None:
    story.planned_job(database, per_part=1)
    [lost] = die_alone(database)
    claimed = claim_next(database)
    where = (lost.job_id, lost.index, lost.token)
    assert not database.transact(lambda conn: give_up(conn, *where, "too late")).won
    assert story.commit(database, claimed).won


def test_a_store_that_stands_still_after_the_audio_is_made_says_nothing(database: Database) -> None:
    story.planned_job(database, per_part=1)
    claimed = claim_next(database)
    assert stand_alone(database, claimed)
    assert stand_alone(database, claimed, alone=False)
    assert [lost.crashes for lost in leases_run_out(database)] == [0]
    assert not stand_alone(database, claimed)


@pytest.mark.parametrize("claimed_anew", [False, True])
def test_a_holder_that_turns_up_after_all_has_not_died(
    database: Database, *, claimed_anew: bool
) -> None:
    story.planned_job(database, per_part=1)
    claimed = claim_next(database)
    assert stand_alone(database, claimed)
    assert [lost.crashes for lost in leases_run_out(database)] == [1]
    if claimed_anew:
        assert claim_next(database).crashes == 1
    for _ in range(2):  # its word may come twice
        forgive(database, claimed)
    leases_run_out(database)
    last = claim_next(database)
    assert (last.crashes, last.suspect) == (0, False)


def test_a_hang_alone_counts_once_by_its_lease_and_its_witness(database: Database) -> None:
    story.planned_job(database, per_part=1)
    for hangs in (1, 2):
        claimed = claim_next(database)
        assert stand_alone(database, claimed)
        assert [lost.crashes for lost in leases_run_out(database)] == [hangs]
        told = database.transact(
            lambda conn, claimed=claimed: blame.testify(  # type: ignore[misc]
                conn, claimed, crashed=True, suspect=False
            )
        )
        assert told == Blame(hangs, claimed.token)


def test_a_word_of_its_holder_begins_the_count_anew(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    for _ in range(3):
        claim_next(database)
        leases_run_out(database)
        claimed = claim_next(database)
        assert not claimed.suspect
        assert database.transact(
            lambda conn, token=claimed.token: segments.release(  # type: ignore[misc]
                conn, job_id, 0, token, delay_s=0, error="the store is away"
            )
        )


def test_a_retry_begins_with_a_clean_record(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1, on_error="fail")
    for _ in range(3):
        [lost] = die_alone(database)
    where = (lost.job_id, lost.index, lost.token)
    database.transact(lambda conn: give_up(conn, *where, "it takes all down"))
    database.transact(lambda conn: retrying.retry(conn, "default", job_id))
    claimed = claim_next(database)
    assert (claimed.crashes, claimed.suspect) == (0, False)
    assert [lost.crashes for lost in leases_run_out(database)] == [0]
    assert not claim_next(database).suspect
