"""Many actors at once, each with a connection of its own: the ledger stays true while they act.

What they do is drawn from a seed; how it interleaves is up to the database. Whoever looks sees one
moment, between transactions.
"""

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import pytest

from shared.ledger.database import Database
from tests.contract.ledger.machine import (
    ground,
    nodes,
    owners,
    postmen,
    readers,
    schedulers,
    step_workers,
    truths,
)
from tests.contract.ledger.machine.ending import check, to_the_end
from tests.contract.ledger.machine.held import BOOKS, TENANTS, Book, Held
from tests.contract.ledger.machine.mishaps import LOSSES, WORDS

ACTORS, JOBS = 6, 8
LATE = 0.3  # how often somebody acts on something old
LOST = 0.15  # how often an assembly finds audio lost

Deed = Callable[[], object]


class Actor:
    """One of the crowd: does whatever comes to its mind, with whatever anybody ever held."""

    def __init__(self, held: Held, seed: str) -> None:
        self._held = held
        self._draw = random.Random(seed)

    def act(self) -> None:
        """Do one thing."""
        kinds = (self._speak, self._work_on_steps, self._look_after, self._own, self._tell)
        [kind] = self._draw.choices(kinds, weights=(8, 6, 5, 1, 2))
        kind()

    def _any(self, things: Sequence[Any]) -> Any:
        """One of the newest most often, sometimes one from long ago."""
        recent = things if self._draw.random() < LATE else things[-8:]
        return self._draw.choice(recent)

    def _do(self, *deeds: Deed) -> None:
        self._draw.choice(deeds)()

    def _speak(self) -> None:
        held, draw = self._held, self._draw
        if draw.random() < 0.3 or not held.messages:
            schedulers.fill(held, draw.randint(1, 6))
            return
        if draw.random() < 0.4 or not held.claims:
            nodes.claim(held, self._any(held.messages))
            return
        claimed = self._any(held.claims)
        mates = [c for c in held.claims[-8:] if c.job_id == claimed.job_id]
        together = {c.index: c for c in [*draw.sample(mates, min(len(mates), 2)), claimed]}
        self._do(
            *[lambda: nodes.commit(held, list(together.values()))] * 5,
            lambda: nodes.take_over(held, claimed),
            lambda: nodes.renew(held, claimed),
            lambda: nodes.stand_alone(held, claimed, alone=draw.random() < 0.7),
            lambda: nodes.release(held, claimed, delay_s=draw.choice([0.0, 60.0])),
            lambda: nodes.put_back(held, claimed),
            lambda: nodes.crash(held, claimed, alone=draw.random() < 0.7),
            *[lambda: draw.choice(LOSSES)(held, claimed)] * 4,
            *[lambda: draw.choice(WORDS)(held, claimed)] * 2,
        )

    def _work_on_steps(self) -> None:
        held, draw = self._held, self._draw
        runs = [*held.plans, *held.assemblies]
        self._do(
            lambda: schedulers.send_steps(held, draw.randint(1, 6)),
            lambda: held.step_messages and step_workers.claim(held, self._any(held.step_messages)),
            *[lambda: held.plans and step_workers.go_on(held, self._any(held.plans))] * 4,
            *[lambda: held.assemblies and self._assemble()] * 3,
            lambda: runs and draw.random() < 0.3 and self._give_up(self._any(runs).claim),
        )

    def _assemble(self) -> None:
        run = self._any(self._held.assemblies)
        if self._draw.random() < LOST:
            step_workers.find_lost(self._held, run, self._draw.randint(1, 3))
            return
        if run.file is None or self._draw.random() < 0.2:
            step_workers.make(self._held, run)
        step_workers.commit(self._held, run, reuse=self._draw.random() < 0.5)

    def _give_up(self, claimed: Any) -> None:
        held = self._held
        self._do(
            lambda: step_workers.renew(held, claimed),
            lambda: step_workers.fail(held, claimed),
            lambda: step_workers.give_back(held, claimed, burn=False, delay_s=0.0),
            lambda: schedulers.let_step_lease_run_out(held, claimed),
        )

    def _look_after(self) -> None:
        held, draw = self._held, self._draw
        self._do(
            lambda: schedulers.take_back_expired(held),
            lambda: schedulers.let_waits_pass(held),
            lambda: schedulers.take_back_lost(
                held, lambda sent: [m for m in sent if draw.random() < 0.3]
            ),
            lambda: schedulers.look_after_forgotten(held),
            lambda: schedulers.delete_objects(held),
        )

    def _own(self) -> None:
        held, draw = self._held, self._draw
        if len(held.jobs) < JOBS:
            book = Book(
                draw.choice(TENANTS), draw.choice(BOOKS), draw.randint(1, 4), draw.random() < 0.7
            )
            on_error = draw.choice(["partial", "partial", "fail"])
            owners.submit(held, book, fallback=draw.random() < 0.5, on_error=on_error)
            return
        job_id = draw.choice(held.jobs)
        self._do(
            *[lambda: owners.pause(held, job_id), lambda: owners.resume(held, job_id)] * 2,
            *[lambda: owners.retry(held, job_id)] * 3,
            lambda: schedulers.age(held, job_id),
            lambda: draw.random() < 0.3 and owners.cancel(held, job_id),
            lambda: draw.random() < 0.3 and owners.delete(held, job_id),
            lambda: draw.random() < 0.3 and schedulers.expire(held, job_id),
        )

    def _tell(self) -> None:
        held, draw = self._held, self._draw
        self._do(
            lambda: postmen.hand_out(held),
            lambda: held.letters and postmen.claim(held, self._any(held.letters)),
            lambda: held.letters and postmen.claim_next(held, self._any(held.letters)),
            lambda: (
                held.deliveries
                and postmen.settle(
                    held, self._any(held.deliveries), draw.choice([200, 500, 404, postmen.GONE])
                )
            ),
            # None is made or removed: which events it would have to be told, only locks decide.
            lambda: draw.choice(readers.CHANGES)(held, draw.choice(TENANTS)),
            lambda: postmen.take_back(held),
        )


@pytest.mark.parametrize(
    ("crowds", "deeds"),
    [(2, 100), pytest.param(40, 300, marks=[pytest.mark.long, pytest.mark.timeout(0)])],
)
def test_a_crowd_at_once_leaves_the_ledger_true(
    database: Database, crowds: int, deeds: int
) -> None:
    ground.prepare(database)
    for crowd in range(crowds):
        held = _begin(database)
        _let_loose(held, [Actor(held, f"{crowd} {number}") for number in range(ACTORS)], deeds)
        to_the_end(held)


@pytest.mark.parametrize(
    ("walks", "deeds"),
    [(2, 200), pytest.param(200, 500, marks=[pytest.mark.long, pytest.mark.timeout(0)])],
)
def test_one_who_plays_all_parts_leaves_the_ledger_true_with_every_deed(
    database: Database, walks: int, deeds: int
) -> None:
    ground.prepare(database)
    for walk in range(walks):
        held = _begin(database)
        actor = Actor(held, f"walk {walk}")
        for _ in range(deeds):
            actor.act()
            check(held)
        to_the_end(held)


def _begin(database: Database) -> Held:
    ground.empty(database)
    held = Held(database)
    owners.want_news(held)
    for number, speech in enumerate(BOOKS[:3]):
        book = Book(TENANTS[0], speech, 2, reuse=True)
        owners.submit(held, book, fallback=number == 1, on_error="partial")
    return held


def _let_loose(held: Held, actors: Sequence[Actor], deeds: int) -> None:
    over = threading.Event()

    def act(actor: Actor) -> None:
        for _ in range(deeds):
            actor.act()

    def watch() -> int:
        looks = 0
        while not over.is_set():
            with ground.snapshot(held.database) as conn:
                faults = list(truths.faults(conn))
            assert not faults, "\n".join(faults)
            looks += 1
            over.wait(0.02)
        return looks

    with ThreadPoolExecutor(len(actors) + 1) as pool:
        watching = pool.submit(watch)
        acting = [pool.submit(act, actor) for actor in actors]
        try:
            for done in as_completed(acting):
                done.result()
        finally:
            over.set()
        assert watching.result() > 0
    check(held)
