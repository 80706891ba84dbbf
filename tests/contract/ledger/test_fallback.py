"""A segment that its engine gave up goes to the job's fallback engine: on both databases."""

from shared.jobs import Fallback
from shared.ledger import renderings, segment_records, segments
from shared.ledger.database import Database
from tests.contract.ledger import story

FALLBACK = Fallback(engine="second", version="2", backend="numpy", voice="b")


def planned(database: Database) -> str:
    job_id = story.submit(database, fallback=FALLBACK.model_dump())
    story.plan(database, job_id)
    return job_id


def fall_back(database: Database, claimed: segments.Claim) -> bool:
    return database.transact(
        lambda conn: segments.fall_back(
            conn,
            claimed.job_id,
            claimed.index,
            claimed.token,
            content_key="other",
            error="it would not speak",
        )
    )


def test_the_fallback_engine_gets_the_segment_with_a_clean_record(database: Database) -> None:
    job_id = planned(database)
    [message, *_] = story.feed(database)
    first = story.must_claim(database, message)
    assert (first.engine, first.voice, first.fallback) == ("tone", "a", FALLBACK)
    assert fall_back(database, first)
    [again] = story.feed(database)
    second = story.must_claim(database, again)
    assert (second.index, second.engine, second.voice) == (first.index, "second", "b")
    assert (second.crashes, second.suspect, second.content_key) == (0, False, "other")
    assert second.fallback is None, "after it there is nobody"
    assert story.commit(database, second).won
    rows = database.read(lambda conn: segment_records.page(conn, job_id, limit=9))
    assert [row.fallback for row in rows] == [True, False, False]
    assert story.count(database, job_id).remaining == story.count(database, job_id).open_rows == 2


def test_only_the_holder_of_the_token_may_fall_back(database: Database) -> None:
    planned(database)
    [message, *_] = story.feed(database)
    claimed = story.must_claim(database, message)
    story.commit(database, claimed)
    assert not fall_back(database, claimed)


def test_who_spoke_for_the_engine_that_gave_up_commits_nothing_as_the_fallbacks(
    database: Database,
) -> None:
    """given evidence of a first worker / when a second, with the same engine, ends well after it"""
    planned(database)
    [message, *_] = story.feed(database)
    first = story.must_claim(database, message)
    second = story.must_claim_anew(database, first)
    assert fall_back(database, second), "by the newest token, as the first worker's evidence has it"
    assert not story.commit(database, second).won
    assert not database.transact(lambda conn: renderings.known(conn, "default", ["other"]))
    [again] = story.feed(database)
    third = story.must_claim(database, again)
    assert third.engine == "second"
    assert story.commit(database, third).won


def test_a_job_without_a_fallback_has_nobody_to_turn_to(database: Database) -> None:
    story.planned_job(database)
    [message, *_] = story.feed(database)
    assert story.must_claim(database, message).fallback is None
