"""Whatever the farm's actors do, in any order and however late, the ledger stays true.

A Hypothesis state machine over the real functions. After each step every rule of the ledger is
checked anew from its rows, and every move against the documents; in the end a fair farm must be
able to finish whatever is left, with every sentence spoken once.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from shared.ledger.database import Database
from shared.ledger.segments import Claim
from tests.contract.ledger.machine import (
    ground,
    mishaps,
    nodes,
    owners,
    postmen,
    readers,
    schedulers,
    step_workers,
)
from tests.contract.ledger.machine.ending import check, to_the_end
from tests.contract.ledger.machine.held import BOOKS, TENANTS, Book, Held
from tests.contract.ledger.machine.mishaps import LOSSES, WORDS

T = TypeVar("T")


class EverLater:
    """In place of the module `time`: no two moments are the same."""

    def __init__(self) -> None:
        self._moments_ns = count(time.time_ns(), 1_000_000)

    def time_ns(self) -> int:
        return next(self._moments_ns)


MOST_JOBS = 4
ANY = st.integers(0, 5)
YES = st.booleans()
DELAYS_S = st.sampled_from([0.0, 60.0])


def has(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A rule for when there is something of the kind."""
    return precondition(lambda machine: bool(getattr(machine.held, name)))


def back(things: list[T], count: int) -> T:
    """The newest but so many."""
    return things[-1 - count % len(things)]


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self, database: Database) -> None:
        super().__init__()
        self.held = Held(database)

    @initialize(progress=st.integers(0, 5), speech=st.sampled_from(BOOKS))
    def begin(self, progress: int, speech: tuple[int, ...]) -> None:
        """A job that has come some way already, so that the steps left lead somewhere."""
        ground.empty(self.held.database)
        owners.want_news(self.held)
        self.submit(TENANTS[0], speech, 2, reuse=True, fallback=False, on_error="partial")
        way = (self.take_steps, self.plan_all, self.speak, self.take_steps, self.assemble_all)
        for stage in way[:progress]:
            stage()

    @precondition(lambda machine: len(machine.held.jobs) < MOST_JOBS)
    @rule(
        tenant=st.sampled_from(TENANTS),
        speech=st.sampled_from(BOOKS),
        chunk=st.integers(1, 4),
        reuse=YES,
        fallback=YES,
        on_error=st.sampled_from(["partial", "partial", "fail"]),
    )
    def submit(
        self,
        tenant: str,
        speech: Sequence[int],
        chunk: int,
        *,
        reuse: bool,
        fallback: bool,
        on_error: str,
    ) -> None:
        book = Book(tenant, tuple(speech), chunk, reuse)
        owners.submit(self.held, book, fallback=fallback, on_error=on_error)

    @rule(job=ANY, wish=st.sampled_from([owners.pause, owners.resume, owners.retry]))
    def ask(self, job: int, wish: Callable[[Held, str], None]) -> None:
        wish(self.held, back(self.held.jobs, job))

    @rule(
        job=ANY,
        how=st.sampled_from(
            [
                owners.cancel,
                owners.delete,
                owners.begin_to_delete,
                schedulers.age,
                schedulers.expire,
            ]
        ),
        doubt=st.integers(0, 3),
    )
    def end(self, job: int, how: Callable[[Held, str], None], doubt: int) -> None:
        if doubt:  # once in a while is enough: what has ended does little
            return
        how(self.held, back(self.held.jobs, job))

    @rule(job=ANY)
    def fail_and_try_again(self, job: int) -> None:
        job_id = back(self.held.jobs, job)
        schedulers.age(self.held, job_id)
        owners.retry(self.held, job_id)

    # nodes

    @has("messages")
    @rule(message=ANY)
    def claim(self, message: int) -> None:
        nodes.claim(self.held, back(self.held.messages, message))

    @rule(sent=st.integers(1, 6), committed=st.integers(0, 6))
    def speak(self, sent: int = 6, committed: int = 6) -> None:
        """Some sentences go all the way, as they do on a good day."""
        before, held_before = len(self.held.messages), len(self.held.claims)
        schedulers.fill(self.held, sent)
        for message in self.held.messages[before:]:
            nodes.claim(self.held, message)
        for claimed in self.held.claims[held_before:][:committed]:
            nodes.commit(self.held, [claimed])

    @has("claims")
    @rule(newest=ANY, others=st.sets(ANY, max_size=2))
    def commit(self, newest: int, others: set[int]) -> None:
        first = back(self.held.claims, newest)
        together = {(first.index): first}
        for other in sorted(others):
            claimed = back(self.held.claims, other)
            if claimed.job_id == first.job_id:
                together.setdefault(claimed.index, claimed)
        nodes.commit(self.held, list(together.values()))

    @has("claims")
    @rule(claimed=ANY)
    def take_over(self, claimed: int) -> None:
        nodes.take_over(self.held, back(self.held.claims, claimed))

    @has("claims")
    @rule(claimed=ANY)
    def renew(self, claimed: int) -> None:
        nodes.renew(self.held, back(self.held.claims, claimed))

    @has("claims")
    @rule(claimed=ANY, alone=YES)
    def stand_alone(self, claimed: int, *, alone: bool) -> None:
        nodes.stand_alone(self.held, back(self.held.claims, claimed), alone=alone)

    @has("claims")
    @rule(claimed=ANY, times=st.integers(1, 2))
    def die_alone(self, claimed: int, times: int) -> None:
        for _ in range(times):
            mishaps.die_alone(self.held, back(self.held.claims, claimed))
            self.speak(6, 0)

    @has("claims")
    @rule(claimed=ANY, delay_s=DELAYS_S)
    def release(self, claimed: int, delay_s: float) -> None:
        nodes.release(self.held, back(self.held.claims, claimed), delay_s=delay_s)

    @has("claims")
    @rule(claimed=ANY)
    def put_back(self, claimed: int) -> None:
        nodes.put_back(self.held, back(self.held.claims, claimed))

    @has("claims")
    @rule(claimed=ANY, alone=YES, times=st.integers(1, 2))
    def crash(self, claimed: int, *, alone: bool, times: int) -> None:
        broken: Claim = back(self.held.claims, claimed)
        for _ in range(times):
            nodes.crash(self.held, broken, alone=alone)

    @has("claims")
    @rule(claimed=ANY, lost=st.sampled_from(LOSSES), anew=YES, word=st.sampled_from(WORDS))
    def speak_late(
        self,
        claimed: int,
        lost: Callable[[Held, Claim], None],
        word: Callable[[Held, Claim], None],
        *,
        anew: bool,
    ) -> None:
        """A worker loses a claim, another may get it, and then the first one has its say."""
        zombie = back(self.held.claims, claimed)
        lost(self.held, zombie)
        if anew:
            self.speak(6, 0)
        word(self.held, zombie)

    # cpu workers

    @rule(window=st.integers(1, 4))
    def take_steps(self, window: int = 4) -> None:
        before = len(self.held.step_messages)
        schedulers.send_steps(self.held, window)
        for message in self.held.step_messages[before:]:
            step_workers.claim(self.held, message)

    @has("step_messages")
    @rule(message=ANY)
    def claim_step(self, message: int) -> None:
        step_workers.claim(self.held, back(self.held.step_messages, message))

    @has("plans")
    @rule()
    def plan_all(self) -> None:
        for run in self.held.plans[-2:]:
            for _ in range(12):
                step_workers.go_on(self.held, run)

    @has("assemblies")
    @rule()
    def assemble_all(self) -> None:
        for run in self.held.assemblies[-3:]:
            step_workers.make(self.held, run)
            step_workers.commit(self.held, run, reuse=True)

    @has("plans")
    @rule(run=ANY, times=st.integers(1, 6))
    def plan(self, run: int, times: int) -> None:
        planning = back(self.held.plans, run)
        for _ in range(times):
            step_workers.go_on(self.held, planning)

    @has("assemblies")
    @rule(run=ANY)
    def make(self, run: int) -> None:
        step_workers.make(self.held, back(self.held.assemblies, run))

    @has("assemblies")
    @rule(run=ANY, every=st.integers(1, 3))
    def find_lost(self, run: int, every: int) -> None:
        step_workers.find_lost(self.held, back(self.held.assemblies, run), every)

    @has("assemblies")
    @rule(run=ANY, reuse=YES)
    def assemble(self, run: int, *, reuse: bool) -> None:
        step_workers.commit(self.held, back(self.held.assemblies, run), reuse=reuse)

    @precondition(lambda machine: machine.held.plans or machine.held.assemblies)
    @rule(run=ANY, does=st.sampled_from(["renew", "release", "burn", "fail", "fail"]))
    def give_a_step_up(self, run: int, does: str) -> None:
        claimed = back([*self.held.plans, *self.held.assemblies], run).claim
        if does == "renew":
            step_workers.renew(self.held, claimed)
        elif does == "fail":
            step_workers.fail(self.held, claimed)
        else:
            step_workers.give_back(self.held, claimed, burn=does == "burn", delay_s=60.0)

    # schedulers, and time

    @rule(room=st.integers(1, 6))
    def fill(self, room: int) -> None:
        schedulers.fill(self.held, room)

    @rule(window=st.integers(1, 4))
    def send_steps(self, window: int) -> None:
        schedulers.send_steps(self.held, window)

    @has("claims")
    @rule(claimed=ANY)
    def let_lease_run_out(self, claimed: int) -> None:
        schedulers.let_lease_run_out(self.held, back(self.held.claims, claimed))

    @precondition(lambda machine: machine.held.plans or machine.held.assemblies)
    @rule(run=ANY)
    def let_step_lease_run_out(self, run: int) -> None:
        claimed = back([*self.held.plans, *self.held.assemblies], run).claim
        schedulers.let_step_lease_run_out(self.held, claimed)

    @rule(
        what=st.sampled_from(
            [
                schedulers.let_waits_pass,
                schedulers.take_back_expired,
                schedulers.take_back_expired,
                schedulers.look_after_forgotten,
                schedulers.delete_objects,
                schedulers.begin_to_delete_objects,
            ]
        )
    )
    def tidy(self, what: Callable[[Held], None]) -> None:
        what(self.held)

    @rule(every=st.integers(1, 3))
    def lose(self, every: int) -> None:
        schedulers.take_back_lost(self.held, lambda messages: messages[::every])

    # webhooks

    @rule()
    def hand_out(self) -> None:
        postmen.hand_out(self.held)

    @has("letters")
    @rule(letter=ANY, goes_on=YES)
    def carry(self, letter: int, *, goes_on: bool) -> None:
        take = postmen.claim_next if goes_on else postmen.claim
        take(self.held, back(self.held.letters, letter))

    @has("deliveries")
    @rule(delivery=ANY, status=st.sampled_from([200, 200, 500, 404, postmen.GONE]))
    def settle(self, delivery: int, status: int) -> None:
        postmen.settle(self.held, back(self.held.deliveries, delivery), status)

    @rule(tenant=st.sampled_from(TENANTS), wish=st.sampled_from(readers.WISHES))
    def change_webhooks(self, tenant: str, wish: Callable[[Held, str], None]) -> None:
        wish(self.held, tenant)

    @has("deliveries")
    @rule(delivery=ANY, again=YES)
    def lose_letters(self, delivery: int, *, again: bool) -> None:
        claimed = back(self.held.deliveries, delivery)
        if again:
            postmen.replay(self.held, claimed)
        else:
            postmen.let_lease_run_out(self.held, claimed)
            postmen.take_back(self.held)

    # what must hold

    @invariant()
    def the_ledger_is_true(self) -> None:
        check(self.held)

    def teardown(self) -> None:
        if self.held.jobs:
            to_the_end(self.held)


@pytest.mark.parametrize(
    "examples",
    [12, pytest.param(2_000, marks=[pytest.mark.long, pytest.mark.timeout(0)])],
)
def test_no_order_of_events_makes_the_ledger_untrue(
    database: Database, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rows are ordered by their ids, and what is done next goes by the rows: told again, a story
    # must come to the same. Of ids made within a millisecond chance decides which is first.
    monkeypatch.setattr("shared.ids.time", EverLater())
    ground.prepare(database)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        partial(LedgerMachine, database),
        settings=settings(max_examples=examples, stateful_step_count=50),
    )
