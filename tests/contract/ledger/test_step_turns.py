"""Whose step is next: few are sent ahead, so that who comes later can still be given a turn."""

from shared.ledger import step_turns, steps
from shared.ledger.database import Database
from shared.tiers import Tier
from tests.contract.ledger import story


def submit(database: Database, tenant: str, tier: Tier = Tier.STANDARD) -> str:
    return story.submit(database, tenant=tenant, tier=tier)


def next_job(database: Database, *, alike: bool = False) -> str | None:
    """The job whose plan is sent next, and claimed at once."""
    messages = database.transact(lambda conn: step_turns.dispatch(conn, window=1, alike=alike))
    for message in messages:
        claimed = database.transact(
            lambda conn, m=message: steps.claim(conn, m.step_id, m.dispatch_no, lease_s=60)  # type: ignore[misc]
        )
        assert claimed is not None
    return messages[0].job_id if messages else None


def test_no_more_are_sent_than_the_window_holds_until_one_is_claimed(database: Database) -> None:
    for _ in range(5):
        submit(database, "a")
    first = database.transact(lambda conn: step_turns.dispatch(conn, window=2))
    assert len(first) == 2
    assert database.transact(lambda conn: step_turns.dispatch(conn, window=2)) == []
    database.transact(
        lambda conn: steps.claim(conn, first[0].step_id, first[0].dispatch_no, lease_s=60)
    )
    assert len(database.transact(lambda conn: step_turns.dispatch(conn, window=2))) == 1


def test_a_newcomer_is_next_however_many_wait_of_another(database: Database) -> None:
    flood = [submit(database, "a") for _ in range(30)]
    assert next_job(database) == flood[0]
    mine = submit(database, "b")
    assert next_job(database) == mine
    assert next_job(database) == flood[1]


def test_tenants_take_turns_and_each_has_its_own_order(database: Database) -> None:
    a = [submit(database, "a") for _ in range(3)]
    b = [submit(database, "b") for _ in range(3)]
    sent = [next_job(database) for _ in range(6)]
    assert [job for job in sent if job in a] == a
    assert [job for job in sent if job in b] == b
    assert next_job(database) is None


def test_urgent_tiers_go_first_unless_all_count_alike(database: Database) -> None:
    bulk = submit(database, "books", Tier.BULK)
    submit(database, "notes", Tier.STANDARD)
    rush = [submit(database, "news", Tier.RUSH) for _ in range(3)]
    assert next_job(database) == rush[0]
    assert next_job(database, alike=True) == bulk
    assert next_job(database) == rush[1]


def test_one_who_has_just_come_is_seen_behind_more_than_is_looked_at(database: Database) -> None:
    for _ in range(20):
        submit(database, "a")
    mine = submit(database, "b")
    [first] = database.transact(lambda conn: step_turns.dispatch(conn, window=1, seen=3))
    [second] = database.transact(lambda conn: step_turns.dispatch(conn, window=2, seen=3))
    assert (first.job_id == mine, second.job_id == mine) == (False, True)
