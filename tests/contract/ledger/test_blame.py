"""What counts against a segment counts whoever holds it by then: on both databases."""

from sqlalchemy import update

from shared.jobs import Fallback
from shared.ledger import abandoned, blame, jobs, segments, settling
from shared.ledger import tables as t
from shared.ledger.blame import Blame
from shared.ledger.database import Database
from shared.ledger.segments import Claim
from tests.contract.ledger import story


def accuse(
    database: Database, claimed: Claim, *, crashed: bool = True, suspect: bool = False
) -> Blame | None:
    return database.transact(
        lambda conn: blame.testify(conn, claimed, crashed=crashed, suspect=suspect)
    )


def lease_runs_out(database: Database) -> None:
    database.transact(lambda conn: conn.execute(update(t.segment).values(lease_until=1.0)))
    assert len(database.transact(abandoned.take_back_expired)) == 1


def test_a_crash_counts_although_the_lease_ran_out_meanwhile(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    for crashes in (1, 2, 3):
        [message] = story.feed(database)
        claimed = story.must_claim(database, message)
        assert claimed.crashes == crashes - 1
        lease_runs_out(database)
        assert accuse(database, claimed) == Blame(crashes, claimed.token)
    gap = database.transact(
        lambda conn: settling.quarantine(conn, job_id, 0, claimed.token, "it hangs")
    )
    assert gap.won
    assert gap.step_id is not None
    assert story.feed(database) == []
    progress = database.read(lambda conn: jobs.get(conn, "default", job_id)).progress
    assert progress.segments_quarantined == 1


def test_a_suspect_runs_alone_although_its_witness_lost_the_lease(database: Database) -> None:
    story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    first = story.must_claim(database, message)
    assert not first.suspect
    lease_runs_out(database)
    accuse(database, first, crashed=False, suspect=True)
    [again] = story.feed(database)
    second = story.must_claim(database, again)
    assert (second.suspect, second.crashes) == (True, 0)


def test_nothing_is_held_against_a_segment_that_was_committed(database: Database) -> None:
    story.planned_job(database)
    [message, *_] = story.feed(database)
    claimed = story.must_claim(database, message)
    assert story.commit(database, claimed).won
    assert accuse(database, claimed) is None


def test_the_fallback_engine_does_not_answer_for_the_one_before_it(database: Database) -> None:
    second = Fallback(engine="second", version="2", backend="numpy", voice="b")
    job_id = story.submit(database, fallback=second.model_dump())
    story.plan(database, job_id, per_part=1)
    [message] = story.feed(database)
    first = story.must_claim(database, message)
    lease_runs_out(database)
    where = (job_id, first.index, first.token)
    assert database.transact(
        lambda conn: segments.fall_back(conn, *where, content_key="other", error="it hangs")
    )
    assert accuse(database, first) is None
    [again] = story.feed(database)
    assert story.must_claim(database, again).crashes == 0
