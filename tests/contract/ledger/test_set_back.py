"""The database's clock is set back: its times then lie in the future. On both databases."""

from typing import Any

import pytest
from sqlalchemy import select, update

from shared.ledger import jobs, nodes, segments, set_back, step_turns, steps
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.ledger.set_back import Longest
from shared.steps import StepKind
from tests.contract.ledger import hooks, story
from tests.unit.api.engines import engine_info
from worker.clock_watch import ClockWatch

HOUR_S = 3_600.0
LEASE_S = 5.0


def set_clock_back(database: Database) -> None:
    """All times of the ledger move an hour ahead: as seen from it, the clock went back."""

    def move(conn: Any) -> None:
        for table, names in (
            (t.segment, ("lease_until", "dispatched_at", "not_before")),
            (t.step, ("lease_until", "dispatched_at", "not_before")),
            (t.node, ("heartbeat_at",)),
        ):
            conn.execute(update(table).values({n: table.c[n] + HOUR_S for n in names}))

    database.transact(move)


LONGEST = Longest(
    lease_s=LEASE_S,
    delivery_lease_s=2 * LEASE_S,
    tries_s=(0.0, 5.0, 6 * HOUR_S),
    asked_s=30.0,
    hold_s=10.0,
    progress_s=20.0,
    kept_s=50.0,
)


def mend(database: Database) -> int:
    mends = (set_back.mend_work, set_back.mend_webhooks, set_back.mend_ends)
    return sum(database.transact(lambda conn, m=m: m(conn, LONGEST)) for m in mends)  # type: ignore[misc]


def ahead_s(database: Database, table: Any, name: str) -> float:
    def read(conn: Any) -> float:
        return float(conn.execute(select(table.c[name])).scalars().first()) - read_clock(conn)

    return database.read(read)


def test_a_dead_workers_lease_lasts_no_longer_than_a_lease(database: Database) -> None:
    story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    story.must_claim(database, message)
    set_clock_back(database)
    assert mend(database) == 1
    assert 0 < ahead_s(database, t.segment, "lease_until") <= LEASE_S
    assert ahead_s(database, t.segment, "dispatched_at") <= 0


def test_a_segment_that_was_given_back_does_not_wait_for_an_hour(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    claimed = story.must_claim(database, message)
    database.transact(
        lambda conn: segments.release(
            conn, job_id, claimed.index, claimed.token, delay_s=1, error="store away"
        )
    )
    set_clock_back(database)
    assert story.feed(database) == []
    assert mend(database) == 1
    assert [m.index for m in story.feed(database)] == [claimed.index]


def test_a_step_is_mended_likewise(database: Database) -> None:
    job_id = story.submit(database)
    claimed = story.claim_step(database, job_id, StepKind.PLAN)
    set_clock_back(database)
    mend(database)
    assert 0 < ahead_s(database, t.step, "lease_until") <= LEASE_S
    assert database.transact(
        lambda conn: steps.release(conn, claimed, delay_s=HOUR_S, error="waits")
    )
    mend(database)
    assert len(database.transact(lambda conn: step_turns.dispatch(conn, window=9))) == 1


def delivery_is(database: Database, **values: float) -> None:
    database.transact(lambda conn: conn.execute(update(t.delivery).values(**values)))


def test_a_deliverys_lease_lasts_no_longer_than_a_lease(database: Database) -> None:
    hooks.register(database)
    hooks.end(database, hooks.submit(database))
    hooks.must_claim(database)
    delivery_is(database, lease_until=9e9, dispatched_at=9e9)
    assert mend(database) == 1
    assert 0 < ahead_s(database, t.delivery, "lease_until") <= 2 * LEASE_S
    assert ahead_s(database, t.delivery, "dispatched_at") <= 0


def test_an_event_that_nobody_tried_to_deliver_yet_goes_out_at_once(database: Database) -> None:
    hooks.register(database)
    hooks.end(database, hooks.submit(database))
    delivery_is(database, not_before=9e9)
    assert hooks.hand_out(database) == []
    assert mend(database) == 1
    assert len(hooks.hand_out(database)) == 1


@pytest.mark.parametrize(("tries", "most_s"), [(1, 30.0), (2, 6.6 * HOUR_S), (7, 6.6 * HOUR_S)])
def test_a_retry_waits_no_longer_than_a_retry_may(
    database: Database, tries: int, most_s: float
) -> None:
    hook = hooks.register(database)
    hooks.end(database, hooks.submit(database))
    delivery_is(database, not_before=9e9, tries=tries)
    assert mend(database) == 1
    assert most_s - 20 < ahead_s(database, t.delivery, "not_before") <= most_s
    assert hooks.hand_out(database) == []
    assert most_s - 20 < ahead_s(database, t.webhook, "next_at") <= most_s, "it says when to look"
    assert hooks.look(database, hook.id).waiting == 1
    assert mend(database) == 0, "once is enough, and what may wait is left alone"


def test_a_webhook_is_left_alone_no_longer_than_it_may_be(database: Database) -> None:
    hook = hooks.register(database)
    hooks.end(database, hooks.submit(database))
    database.transact(lambda conn: conn.execute(update(t.webhook).values(held_until=9e9)))
    assert mend(database) == 1
    assert 0 < hooks.look(database, hook.id).held_until - database.read(read_clock) <= 33
    assert 0 < ahead_s(database, t.webhook, "next_at") <= 33


def test_what_is_over_is_not_over_in_an_hour(database: Database) -> None:
    job_id = story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    story.commit(database, story.must_claim(database, message))
    database.transact(lambda conn: jobs.cancel(conn, "default", job_id))
    database.transact(
        lambda conn: (
            conn.execute(update(t.job).values(unswept_since=9e9, progress_at=9e9)),
            conn.execute(update(t.stored_object).values(condemned_at=9e9, doomed_at=9e9)),
        )
    )
    assert mend(database) == 3
    assert ahead_s(database, t.job, "unswept_since") <= 0
    assert 0 < ahead_s(database, t.job, "progress_at") <= 20
    assert 0 < ahead_s(database, t.stored_object, "condemned_at") <= 50
    assert ahead_s(database, t.stored_object, "doomed_at") <= 0
    assert mend(database) == 0


def test_what_is_as_it_should_be_is_left_alone(database: Database) -> None:
    story.planned_job(database)
    for message in story.feed(database)[:2]:
        story.must_claim(database, message, lease_s=LEASE_S)
    assert mend(database) == 0


def test_a_node_that_is_gone_does_not_seem_to_live_for_an_hour(database: Database) -> None:
    database.transact(lambda conn: nodes.publish(conn, "n", engine_info("tone")))
    database.transact(lambda conn: conn.execute(t.node.update().values(heartbeat_at=9e9)))
    mend(database)
    assert ahead_s(database, t.node, "heartbeat_at") <= 0
    [record] = database.read(nodes.engines)
    assert record.nodes == 1


@pytest.mark.parametrize(
    ("database_s", "steady_s", "seen"),
    [(101.0, 11.0, "on"), (99.5, 11.0, "on"), (97.0, 11.0, "back"), (5_000.0, 11.0, "on")],
)
def test_the_watch_compares_two_clocks(database_s: float, steady_s: float, seen: str) -> None:
    watch = ClockWatch()
    assert watch.was_set_back(100.0, 10.0), "nobody knows what was before"
    assert watch.was_set_back(database_s, steady_s) is (seen == "back")
    assert not watch.was_set_back(database_s + 1, steady_s + 1)
