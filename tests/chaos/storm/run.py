"""One storm from beginning to end: a calm book, squalls while books come in, and the judgement."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field

from sqlalchemy import Connection, func, select

from shared.ledger import tables as t
from shared.segments import SegmentKind, SegmentState
from shared.webhooks import SELECTABLE_EVENTS
from tests.chaos.storm.book import POISONS, book
from tests.chaos.storm.carrying_out import carry_out
from tests.chaos.storm.ground import Ground, ground
from tests.chaos.storm.judgement import Submitted, judge
from tests.chaos.storm.leftovers import leftovers
from tests.chaos.storm.plan import Squall
from tests.chaos.storm.recovery import in_flight, recovered
from tests.chaos.storm.told import untold
from tests.chaos.storm.witness import all_reuses

log = logging.getLogger(__name__)
_BOOKS_UNDER_WAY = 2
EVENTS = [event.value for event in SELECTABLE_EVENTS]


@dataclass(frozen=True, slots=True)
class Size:
    """How large a storm is. `recover_s`: a squall not recovered from by then is a finding.

    So are a job that has not ended after `end_s`, a webhook not told and a store not clean by then.
    """

    segments: int
    sentences_a_book: int
    lease_s: float
    delay_s: float
    recover_s: float = 60.0
    end_s: float = 300.0
    poisons: tuple[str, ...] = POISONS


@dataclass(slots=True)
class Feeder:
    """Submits book after book from a thread of its own, so that there is always work."""

    ground: Ground
    seed: int
    size: Size
    submitted: list[Submitted] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def submit(self) -> Submitted:
        """Submit the next book."""
        made = book(
            self.seed,
            len(self.submitted),
            sentences=self.size.sentences_a_book,
            poisons=self.size.poisons,
        )
        told = {"url": self.ground.letterbox.url(len(self.submitted)), "events": EVENTS}
        job_id = self.ground.farm.send(made.body() | {"webhook": told})
        self.submitted.append(Submitted(made, job_id))
        return self.submitted[-1]

    @property
    def segments(self) -> int:
        """Sentences submitted so far, without those that may be reused."""
        return sum(s.book.sentences for s in self.submitted if not s.book.repeats)

    def start(self) -> None:
        """Begin to submit."""
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Submit what is missing of the storm's size, and no more."""
        self._enough.set()
        assert self._thread is not None
        self._thread.join()

    def _feed(self) -> None:
        try:
            while not self._enough.is_set() or self.segments < self.size.segments:
                if self._under_way() < _BOOKS_UNDER_WAY * self.size.sentences_a_book:
                    self.submit()
                else:
                    time.sleep(0.2)
        except Exception as error:
            log.exception("no more books")
            self.errors.append(f"a book could not be submitted: {error}")

    def _under_way(self) -> int:
        settled = self.ground.database.read(_settled, patience_s=120)
        return sum(s.book.sentences for s in self.submitted) - settled


def _settled(conn: Connection) -> int:
    ended = t.segment.c.state.in_((SegmentState.DONE, SegmentState.QUARANTINED))
    return int(
        conn.execute(
            select(func.count()).where(ended, t.segment.c.kind == SegmentKind.SPEECH)
        ).scalar_one()
    )


def weather(
    seed: int,
    database_kind: str,
    size: Size,
    plan: Callable[[Collection[str]], Sequence[Squall]],
) -> dict[str, object]:
    """Run one storm on a ground of its own and return what is reported of it.

    `plan` says what falls on a ground, given what that ground offers.
    """
    began_s = time.monotonic()
    with ground(database_kind, lease_s=size.lease_s, delay_s=size.delay_s, seed=seed) as here:
        feeder = Feeder(here, seed, size)
        calm = feeder.submit()
        here.farm.end_of(calm.job_id)
        findings = [f"before the storm: {fault}" for fault in judge(here, calm)]
        feeder.start()
        while not in_flight(here.database):
            time.sleep(0.1)
        squalls = plan(here.offers)
        recoveries = [_endure(here, squall, size) for squall in squalls]
        feeder.finish()
        findings += feeder.errors
        for job in feeder.submitted:
            try:
                here.farm.end_of(job.job_id, size.end_s)
                findings += judge(here, job)
            except Exception as error:  # noqa: BLE001 - a finding like any other
                findings.append(f"job {job.job_id} could not be judged: {error!r:.300}")
            here.keep_up()
        for recovery in recoveries:
            if recovery["again_s"] is None or recovery["whole_s"] is None:
                findings.append(f"not recovered within {size.recover_s:.0f} s: {recovery}")
        findings += untold(here, feeder.submitted, within_s=size.end_s)
        came = here.letterbox.received()
        reused = here.database.read(all_reuses)
        for job in _forgotten(feeder.submitted):
            here.farm.delete(job.job_id)
        left = leftovers(here, within_s=size.end_s)
        findings += left.findings()
    return {
        "seed": seed,
        "database": database_kind,
        "offers": sorted(here.offers),
        "segments": feeder.segments,
        "jobs": len(feeder.submitted),
        "poisoned_jobs": sum(job.book.poison is not None for job in feeder.submitted),
        "faults": sum(len(squall.strokes) for squall in squalls),
        "wall_s": round(time.monotonic() - began_s, 1),
        "recoveries": recoveries,
        "reused_segments": reused,
        "events": len({one.id for one in came}),
        "requests": len(came),
        "orphan_objects": len(left.unknown) + len(left.uploads),
        "findings": findings,
    }


def _forgotten(submitted: Sequence[Submitted]) -> list[Submitted]:
    """The jobs that are deleted in the end: all with a gap, which somebody might still retry and
    whose leftovers are therefore kept, and every second one of the others.
    """
    return [s for number, s in enumerate(submitted) if s.book.poison is not None or number % 2]


def _endure(here: Ground, squall: Squall, size: Size) -> dict[str, object]:
    before = in_flight(here.database)
    names = [stroke.fault for stroke in squall.strokes]
    log.warning("squall: %s", ", ".join(names))
    carry_out(here, squall)
    found = recovered(here.database, before, here.queues, within_s=size.recover_s)
    log.warning("recovered: %s", found)
    here.keep_up()
    time.sleep(squall.calm_s)
    return {"faults": names, **asdict(found)}
