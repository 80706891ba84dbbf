"""Steps that take down whoever carries them out, and those that only seem to. Both databases."""

from sqlalchemy import select, update

from shared.ledger import abandoned_steps, jobs, steps
from shared.ledger import tables as t
from shared.ledger.abandoned_steps import MOST_IN_A_ROW, LostStep
from shared.ledger.database import Database
from shared.ledger.steps import StepClaim
from shared.steps import StepKind
from tests.contract.ledger import story


def lose(database: Database) -> LostStep:
    """Let the one lease run out, and its step be sent again however long it should wait."""
    c = t.step.c
    database.transact(
        lambda conn: conn.execute(update(t.step).where(c.state == "leased").values(lease_until=1.0))
    )
    [lost] = database.transact(abandoned_steps.take_back_expired)
    return lost


def claim(database: Database, job_id: str) -> StepClaim:
    return story.claim_step(database, job_id, StepKind.PLAN)


def test_one_lost_time_and_again_fails_its_job_by_name(database: Database) -> None:
    job_id = story.submit(database)
    for times in range(1, MOST_IN_A_ROW + 1):
        claim(database, job_id)
        lost = lose(database)
        assert lost.abandoned == times
    assert database.transact(lambda conn: abandoned_steps.fail(conn, lost))
    assert not database.transact(lambda conn: abandoned_steps.fail(conn, lost))
    record = database.read(lambda conn: jobs.get(conn, "default", job_id))
    assert (record.state, record.error_code) == ("failed", "plan-failed")


def test_somebody_who_has_it_meanwhile_may_finish_it(database: Database) -> None:
    job_id = story.submit(database)
    claim(database, job_id)
    lost = lose(database)
    heir = claim(database, job_id)
    assert not database.transact(lambda conn: abandoned_steps.fail(conn, lost))
    assert database.transact(lambda conn: steps.finish(conn, heir))


def test_a_loss_burns_no_attempt(database: Database) -> None:
    job_id = story.submit(database)
    for _ in range(4):
        assert claim(database, job_id).attempt == 1
        lose(database)


def test_a_late_word_of_a_holder_begins_the_count_anew(database: Database) -> None:
    """As when the store stands still: leases run out first, and the reasons come later."""
    job_id = story.submit(database)
    held = []
    for _ in range(3):
        held.append(claim(database, job_id))
        lost = lose(database)
    assert lost.abandoned == 3
    assert not database.transact(
        lambda conn: steps.release(conn, held[0], delay_s=0, error="the store is away")
    )
    claim(database, job_id)
    assert lose(database).abandoned == 1
    assert not database.transact(lambda conn: steps.renew(conn, held[1], lease_s=9))
    claim(database, job_id)
    assert lose(database).abandoned == 1


def test_after_the_first_time_each_waits_longer_and_for_itself(database: Database) -> None:
    ids = [story.submit(database) for _ in range(2)]
    waits: list[set[float]] = []
    for _ in range(2):
        for job_id in ids:
            claim(database, job_id)
        database.transact(lambda conn: conn.execute(update(t.step).values(lease_until=1.0)))
        assert len(database.transact(abandoned_steps.take_back_expired)) == 2
        found = database.read(lambda conn: conn.execute(select(t.step.c.not_before)).scalars())
        waits.append(set(found))
    at_once, later = waits
    assert at_once == {0.0}
    assert len(later) == 2
