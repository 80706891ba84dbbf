"""Handing out, claiming and settling deliveries: the same on SQLite and on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from shared.ledger import deliveries, delivery_log, handing_out, tables, webhook_turns, webhooks
from shared.ledger.database import Database
from shared.messages import DeliveryMessage
from shared.webhooks import DeliveryState, Outcome, Standing, Verdict
from tests.contract.ledger import hooks

WAIT = Verdict(DeliveryState.PENDING, delay_s=60.0)


def waiting(database: Database, count: int, url: str = hooks.URL) -> str:
    """A webhook for which so many deliveries wait."""
    hook = hooks.register(database, url, tenant=url.partition("//")[2].partition(".")[0])
    for _ in range(count):
        hooks.end(database, hooks.submit(database, tenant=hook.tenant))
    return hook.id


def answer_once(database: Database, webhook_id: str) -> None:
    """Make a webhook one that is known to answer."""
    [message] = [m for m in hooks.hand_out(database) if m.webhook_id == webhook_id]
    claimed = hooks.claim(database, message)
    assert claimed is not None
    hooks.settle(database, claimed)


def test_a_stale_or_second_message_claims_nothing(database: Database) -> None:
    waiting(database, 1)
    [message] = hooks.hand_out(database)
    stale = DeliveryMessage(message.delivery_id, message.webhook_id, message.dispatch_no - 1)
    assert hooks.claim(database, stale) is None
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda _: hooks.claim(database, message), range(16)))
    assert sum(claimed is not None for claimed in claims) == 1


def test_every_attempt_is_logged_and_a_delivery_ends_once(database: Database) -> None:
    webhook_id = waiting(database, 1)
    claimed = hooks.must_claim(database)
    refused = Outcome(503, None, 0.25)
    assert hooks.settle(database, claimed, refused, Verdict(DeliveryState.PENDING))
    again = hooks.must_claim(database)
    assert (again.attempt, again.tries, again.event_id) == (2, 2, claimed.event_id)
    assert hooks.settle(database, again)
    assert not hooks.settle(database, again, hooks.BAD)
    assert not hooks.settle(database, claimed, hooks.BAD)
    [record] = hooks.log(database, webhook_id)
    assert (record.state, record.attempts, record.status) == (DeliveryState.DELIVERED, 2, 200)
    tries = database.read(lambda conn: delivery_log.attempts(conn, record.id))
    assert [(one.number, one.status, one.duration_s) for one in tries] == [
        (1, 503, 0.25),
        (2, 200, 0.1),
    ]
    assert hooks.hand_out(database) == []


def test_a_dead_workers_delivery_goes_again_and_its_late_word_counts_for_nothing(
    database: Database,
) -> None:
    webhook_id = waiting(database, 1)
    lost = hooks.must_claim(database, lease_s=-1.0)
    assert database.transact(deliveries.take_back_expired) == 1
    assert database.transact(deliveries.take_back_expired) == 0
    again = hooks.must_claim(database)
    assert (again.event_id, again.tries) == (lost.event_id, lost.tries)  # no try was burned
    assert again.token > lost.token
    assert not hooks.settle(database, lost, hooks.BAD)
    assert hooks.settle(database, again)
    assert hooks.look(database, webhook_id, "h").failures == 0


@pytest.mark.parametrize("replayed", [False, True])
def test_an_attempt_is_noted_once_also_while_its_delivery_waits_again(
    database: Database, *, replayed: bool
) -> None:
    """given a worker whose commit counted, though it never heard so / when it settles again"""
    webhook = hooks.register(database)
    hooks.end(database, hooks.submit(database))
    claimed = hooks.must_claim(database)
    after = Verdict(DeliveryState.FAILED if replayed else DeliveryState.PENDING)
    assert hooks.settle(database, claimed, hooks.BAD, after)
    if replayed:
        database.transact(lambda conn: delivery_log.replay(conn, webhook.id, claimed.id))
    assert not hooks.settle(database, claimed, hooks.BAD, after)
    look = database.read(lambda conn: webhooks.get(conn, "default", webhook.id))
    assert look.failures == 1
    again = hooks.must_claim(database)
    assert hooks.settle(database, again)
    attempts = database.read(lambda conn: delivery_log.attempts(conn, claimed.id))
    assert [attempt.status for attempt in attempts] == [500, 200]


def test_the_newest_token_may_settle_past_its_lease(database: Database) -> None:
    webhook_id = waiting(database, 1)
    late = hooks.must_claim(database, lease_s=-1.0)
    database.transact(deliveries.take_back_expired)
    assert hooks.settle(database, late)
    assert hooks.hand_out(database) == []
    assert hooks.look(database, webhook_id, "h").standing is Standing.GOOD


def test_what_the_broker_lost_is_handed_out_again_under_a_new_number(database: Database) -> None:
    waiting(database, 1)
    [lost] = hooks.hand_out(database)
    assert database.read(handing_out.dispatched_count) == 1
    assert database.read(lambda conn: handing_out.dispatched_before(conn, 3_600.0)) == []
    assert database.read(lambda conn: handing_out.dispatched_before(conn, -1.0)) == [lost]
    assert database.transact(lambda conn: handing_out.take_back_lost(conn, [lost])) == 1
    assert database.transact(lambda conn: handing_out.take_back_lost(conn, [lost])) == 0
    [fresh] = hooks.hand_out(database)
    assert fresh.dispatch_no == lost.dispatch_no + 1
    assert hooks.claim(database, lost) is None
    assert hooks.claim(database, fresh) is not None


def test_a_webhook_gets_one_try_at_a_time_until_it_has_answered_well(database: Database) -> None:
    webhook_id = waiting(database, 9)
    first = hooks.must_claim(database)
    assert hooks.hand_out(database) == []
    assert hooks.claim_next(database, webhook_id) is None
    hooks.settle(database, first)
    assert len(hooks.hand_out(database)) == hooks.SLOTS[Standing.GOOD].each
    assert hooks.hand_out(database) == []
    assert hooks.claim_next(database, webhook_id) is None  # all of its slots are taken


def test_a_worker_goes_on_with_the_next_and_leaves_it_after_a_failure(database: Database) -> None:
    webhook_id = waiting(database, 3)
    hooks.settle(database, hooks.must_claim(database))
    second = hooks.claim_next(database, webhook_id)
    assert second is not None
    hooks.settle(database, second, hooks.BAD, WAIT)
    assert hooks.claim_next(database, webhook_id) is None
    assert hooks.look(database, webhook_id, "h").standing is Standing.FAILING


def test_the_dead_take_no_slot_from_the_living(database: Database) -> None:
    """given more dead webhooks than slots / when the living have news / then it is handed out."""
    for n in range(hooks.SLOTS[Standing.NEW].total + 9):
        waiting(database, 2, f"https://dead{n}.example/")
    assert len(hooks.hand_out(database)) == hooks.SLOTS[Standing.NEW].total
    living = waiting(database, 3, "https://living.example/")
    database.transact(
        lambda conn: conn.execute(
            update(tables.webhook).where(tables.webhook.c.id == living).values(standing="good")
        )
    )
    assert {message.webhook_id for message in hooks.hand_out(database)} == {living}


def test_two_hand_out_at_once_and_no_slot_is_given_twice(database: Database) -> None:
    for n in range(20):
        waiting(database, 1, f"https://h{n}.example/")
    with ThreadPoolExecutor(8) as pool:
        rounds = list(pool.map(lambda _: hooks.hand_out(database), range(8)))
    given = [message.delivery_id for messages in rounds for message in messages]
    assert len(given) == len(set(given)) == hooks.SLOTS[Standing.NEW].total


def test_a_held_webhook_is_left_alone_until_its_owner_asks(database: Database) -> None:
    webhook_id = waiting(database, 2)
    claimed = hooks.must_claim(database)
    hold = Verdict(DeliveryState.PENDING, delay_s=0.0, hold_s=3_600.0)
    hooks.settle(database, claimed, hooks.BAD, hold)
    assert hooks.hand_out(database) == []
    hooks.end(database, hooks.submit(database, tenant="h"))  # news does not wake it either
    assert hooks.hand_out(database) == []
    database.transact(lambda conn: delivery_log.replay(conn, webhook_id, claimed.id))
    assert len(hooks.hand_out(database)) == 1


def test_410_disables_a_webhook_and_fails_what_waits(database: Database) -> None:
    webhook_id = waiting(database, 3)
    gone = Verdict(DeliveryState.FAILED, disable=True)
    hooks.settle(database, hooks.must_claim(database), Outcome(410, None, 0.1), gone)
    hook = hooks.look(database, webhook_id, "h")
    assert hook.disabled_reason == "it answered 410"
    assert {one.state for one in hooks.log(database, webhook_id)} == {DeliveryState.FAILED}
    assert hooks.hand_out(database) == []


@pytest.mark.parametrize("end", ["an answer that asks for another try", "a lost worker"])
def test_what_is_under_way_when_its_webhook_is_disabled_waits_for_it_no_more(
    database: Database, end: str
) -> None:
    webhook_id = waiting(database, 1)
    claimed = hooks.must_claim(database, lease_s=-1.0)
    database.transact(lambda conn: webhooks.disable(conn, webhook_id, "a wish"))
    if end == "a lost worker":
        assert database.transact(deliveries.take_back_expired) == 1
    else:
        assert hooks.settle(database, claimed, hooks.BAD)
    [delivery] = hooks.log(database, webhook_id)
    assert (delivery.state, delivery.error) == (DeliveryState.FAILED, webhook_turns.DISABLED)
    assert hooks.look(database, webhook_id, "h").waiting == 0
    assert hooks.hand_out(database) == []


def test_an_event_that_comes_while_its_webhook_is_being_disabled_does_not_wait(
    database: Database,
) -> None:
    """given one written by who saw the webhook enabled, and committed after it was disabled"""
    webhook_id = waiting(database, 1)
    disabled = update(tables.webhook).values(disabled_at=1.0, disabled_reason="a wish")
    database.transact(lambda conn: conn.execute(disabled))
    assert hooks.hand_out(database) == []
    [delivery] = hooks.log(database, webhook_id)
    assert (delivery.state, delivery.error) == (DeliveryState.FAILED, webhook_turns.DISABLED)


def test_a_replay_begins_anew_with_the_same_event(database: Database) -> None:
    webhook_id = waiting(database, 1)
    claimed = hooks.must_claim(database)
    hooks.settle(database, claimed, hooks.BAD, Verdict(DeliveryState.FAILED))
    database.transact(lambda conn: delivery_log.replay(conn, webhook_id, claimed.id))
    again = hooks.must_claim(database)
    assert (again.event_id, again.tries, again.attempt) == (claimed.event_id, 1, 2)
    database.transact(lambda conn: delivery_log.replay(conn, webhook_id, claimed.id))  # under way
    assert hooks.hand_out(database) == []
    assert hooks.settle(database, again)


def test_what_was_never_sent_burns_no_try_and_blames_nobody(database: Database) -> None:
    webhook_id = waiting(database, 1)
    never = Outcome(None, "the secrets differ", 0.0, counts=False)
    hooks.settle(database, hooks.must_claim(database), never, Verdict(DeliveryState.PENDING))
    again = hooks.must_claim(database)
    assert again.tries == 1
    hook = hooks.look(database, webhook_id, "h")
    assert (hook.failures, hook.standing) == (0, Standing.NEW)


def test_what_waits_behind_a_dead_webhook_is_given_up_in_the_end(database: Database) -> None:
    webhook_id = waiting(database, 2)
    assert database.transact(lambda conn: deliveries.give_up_old(conn, 3_600.0)) == 0
    assert database.transact(lambda conn: deliveries.give_up_old(conn, -1.0)) == 2
    assert {one.state for one in hooks.log(database, webhook_id)} == {DeliveryState.FAILED}
    assert hooks.hand_out(database) == []


def test_a_webhook_that_was_forgotten_is_found(database: Database) -> None:
    waiting(database, 1)
    database.transact(lambda conn: conn.execute(update(tables.delivery).values(noticed=True)))
    assert hooks.hand_out(database) == []
    assert database.transact(webhook_turns.find_forgotten) == 1
    assert len(hooks.hand_out(database)) == 1


@pytest.mark.parametrize("threads", [6])
def test_a_storm_of_ends_and_settlements_loses_no_delivery(
    database: Database, threads: int
) -> None:
    """Jobs end while workers settle: what is waiting is never thought to be nothing."""
    webhook_id = waiting(database, 1)
    answer_once(database, webhook_id)
    ids = [hooks.submit(database, tenant="h") for _ in range(60)]

    def work(_: int) -> None:
        for message in hooks.hand_out(database):
            claimed = hooks.claim(database, message)
            while claimed is not None:
                hooks.settle(database, claimed)
                claimed = hooks.claim_next(database, webhook_id)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda job_id: (hooks.end(database, job_id), work(0)), ids))
    work(0)
    states = [one.state for one in hooks.log(database, webhook_id)]
    assert states == [DeliveryState.DELIVERED] * 61
