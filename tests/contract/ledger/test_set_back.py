"""The database's clock is set back: its times then lie in the future. On both databases."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import select, update

from shared.ledger import nodes, segments, set_back, step_turns, steps
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.steps import StepKind
from shared.webhooks import DeliveryState
from tests.contract.ledger import hooks, story
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


def mend(database: Database) -> int:
    return database.transact(
        lambda conn: set_back.mend(conn, lease_s=LEASE_S, delivery_lease_s=2 * LEASE_S)
    )


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


def test_a_webhooks_lease_is_mended_and_its_waits_of_hours_stay(database: Database) -> None:
    hooks.register(database)
    for _ in range(2):
        hooks.end(database, hooks.submit(database))
    hooks.must_claim(database)
    d = t.delivery.c
    waits = d.state == DeliveryState.PENDING
    database.transact(
        lambda conn: (
            conn.execute(update(t.delivery).where(waits).values(not_before=9e9)),
            conn.execute(update(t.delivery).where(~waits).values(lease_until=9e9)),
        )
    )
    assert mend(database) == 1
    left = database.read(lambda conn: conn.execute(select(d.state, d.not_before)).all())
    assert (DeliveryState.PENDING, 9e9) in [tuple(row) for row in left]


def test_what_is_as_it_should_be_is_left_alone(database: Database) -> None:
    story.planned_job(database)
    for message in story.feed(database)[:2]:
        story.must_claim(database, message, lease_s=LEASE_S)
    assert mend(database) == 0


def test_a_node_that_is_gone_does_not_seem_to_live_for_an_hour(database: Database) -> None:
    before: Mapping[str, Any] = {"id": "n", "engine": "tone", "slots": 1, "heartbeat_at": 9e9}
    database.transact(lambda conn: conn.execute(t.node.insert().values(**before)))
    mend(database)
    assert ahead_s(database, t.node, "heartbeat_at") <= 0
    assert database.read(nodes.live_nodes) == 1


@pytest.mark.parametrize(
    ("database_s", "steady_s", "seen"),
    [(101.0, 11.0, "on"), (99.5, 11.0, "on"), (97.0, 11.0, "back"), (5_000.0, 11.0, "on")],
)
def test_the_watch_compares_two_clocks(database_s: float, steady_s: float, seen: str) -> None:
    watch = ClockWatch()
    assert watch.was_set_back(100.0, 10.0), "nobody knows what was before"
    assert watch.was_set_back(database_s, steady_s) is (seen == "back")
    assert not watch.was_set_back(database_s + 1, steady_s + 1)
