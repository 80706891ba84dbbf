"""One look for all threads tells which jobs have ended, and which stand still."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from shared.errors import LedgerBusyError
from worker.watching import LOOK_EVERY_S, JobWatch


@dataclass
class Ledger:
    rendering: set[str]
    paused: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)
    away: bool = False

    def read(self, job_ids: Collection[str]) -> Mapping[str, bool]:
        self.asked.append(sorted(job_ids))
        if self.away:
            raise LedgerBusyError
        return {job_id: job_id in self.paused for job_id in self.rendering & set(job_ids)}


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_job_that_ends_is_noticed_with_one_look_for_all() -> None:
    ledger, clock = Ledger({"a", "b"}), Clock()
    watch = JobWatch(ledger.read, clock=clock)
    with watch.watching("a"), watch.watching("a"), watch.watching("b"):
        assert not watch.has_ended("a")
        ledger.rendering.remove("b")
        assert not watch.has_ended("b")  # nobody has looked since
        clock.now_s += LOOK_EVERY_S
        assert not watch.has_ended("a")
        assert watch.has_ended("b")
    assert ledger.asked == [["a", "b"], ["a", "b"]]


def test_only_what_is_at_work_is_looked_at() -> None:
    ledger, clock = Ledger({"a"}), Clock()
    watch = JobWatch(ledger.read, clock=clock)
    with watch.watching("a"):
        pass
    watch.has_ended("a")
    assert ledger.asked == []


def test_with_the_ledger_away_nothing_counts_as_ended() -> None:
    ledger, clock = Ledger(set(), away=True), Clock()
    watch = JobWatch(ledger.read, clock=clock)
    with watch.watching("a"):
        assert not watch.has_ended("a")
        ledger.away = False
        assert not watch.has_ended("a")
        clock.now_s += LOOK_EVERY_S
        assert watch.has_ended("a")


def test_a_paused_job_has_not_ended_and_one_that_goes_on_is_not_paused() -> None:
    ledger, clock = Ledger({"a", "b"}, paused={"a"}), Clock()
    watch = JobWatch(ledger.read, clock=clock)
    with watch.watching("a"), watch.watching("b"):
        assert watch.is_paused("a")
        assert not watch.is_paused("b")
        assert not watch.has_ended("a")
        ledger.paused = {"b"}
        clock.now_s += LOOK_EVERY_S
        assert not watch.is_paused("a")
        assert watch.is_paused("b")
        ledger.rendering.remove("b")
        clock.now_s += LOOK_EVERY_S
        assert watch.has_ended("b")
        assert not watch.is_paused("b")
    assert len(ledger.asked) == 3
