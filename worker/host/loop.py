"""The engine loop: policy, admit, step, emit; and what happens when the engine fails.

Knows no socket: events come from an inbox, answers go through the desk. An exception in a batch is
narrowed down by running its halves by themselves; one that remains is the utterance's own fault,
provided that the engine still says the canary. If it does not, the engine is broken and the host
ends, so that nobody's text is blamed for a lost device. Out of memory, batches become smaller for a
while, and a single utterance is forgiven at first.
"""

import logging
import queue
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from worker.batching.given import Given
from worker.batching.policy import Policy
from worker.batching.room import Room, halves
from worker.engines.base import Chunk, Engine, Utterance
from worker.host.canary import BrokenEngineError, speak_canary
from worker.host.desk import Desk
from worker.host.events import Drop, Event, Gone, Say, Stop
from worker.host.pace import Pace
from worker.host.protocol import Vitals
from worker.host.shortages import Shortages
from worker.host.wear import Wear

log = logging.getLogger(__name__)

_FORGET = 0.9  # a step's length fades from the estimate by so much with each shorter one


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the engine that has not returned: since when, and how long it may be."""

    began_s: float
    usual_s: float = 0.0


@dataclass(slots=True)
class HostLoop:
    """Runs one engine until a Stop arrives. Single-threaded, but for `vitals`."""

    engine: Engine
    policy: Policy
    desk: Desk
    inbox: queue.SimpleQueue[Event]
    clock: Callable[[], float] = time.monotonic
    due_clock: Callable[[], float] = time.time
    wear: Wear = field(default_factory=Wear)
    _apart: deque[list[str]] = field(default_factory=deque)  # groups to be run by themselves
    _stopping: bool = False
    _steps: int = 0
    _finished: int = 0
    _row_steps: int = 0
    _step_s: float = 0.0
    _call: _Call | None = None
    _pace: Pace = field(default_factory=Pace)
    _given: Given = field(default_factory=Given)
    _shortages: Shortages = field(default_factory=Shortages)
    _room: Room = field(init=False)

    def __post_init__(self) -> None:
        self._room = Room.of(self.policy.slots)

    def vitals(self) -> Vitals:
        """What has been done so far; may be called from any thread."""
        call = self._call  # another thread may change it meanwhile
        return Vitals(
            steps=self._steps,
            utterances=self._finished,
            busy_s=0.0 if call is None else self.clock() - call.began_s,
            usual_s=0.0 if call is None else call.usual_s,
            row_steps=self._row_steps,
            at_most=self.policy.slots,
        )

    def run(self) -> None:
        """Serve until a Stop has arrived, or the host is worn, and the device is empty.

        Raises BrokenEngineError when only a new process can help.
        """
        while True:
            self._take_in()
            if not self._stopping and (reason := self.wear.worn()) is not None:
                log.info("making room for a new host: %s", reason)
                self._stopping = True
            if self._stopping:
                self.desk.turn_away("the host is stopping")
                if not self.desk.held_ids:
                    return
            wait_s = self._admit()
            if self.desk.held_ids:
                self._step()
            elif not self._apart and not self._stopping:
                self._await(wait_s)

    def _take_in(self) -> None:
        while not self.inbox.empty():
            self._apply(self.inbox.get())

    def _await(self, timeout_s: float | None) -> None:
        try:
            self._apply(self.inbox.get(timeout=timeout_s))
        except queue.Empty:
            return

    def _apply(self, event: Event) -> None:
        match event:
            case Say():
                self.desk.accept(event)
            case Drop(connection, link_id):
                self._drop(self.desk.withdraw(connection, link_id))
            case Gone(connection):
                self._drop(self.desk.withdraw(connection))
            case Stop():
                self._stopping = True

    def _admit(self) -> float | None:
        """Begin what may begin now; returns after how long to ask again, if that helps."""
        if self._apart:
            if not self.desk.held_ids:
                self._begin(self._next_apart())
            return None
        if len(self.desk.held_ids) >= self.policy.slots:
            return None
        waiting, due_clock_s = self.desk.waiting(), self.due_clock()
        decision = self.policy.decide(
            waiting,
            self.desk.held(),
            may_arrive=self.desk.may_arrive,
            now_s=self.clock(),
            due_clock_s=due_clock_s,
            step_s=self._step_s,
            given=self._given,
        )
        self._given = self._given.after(waiting, decision.admit, due_clock_s=due_clock_s)
        self._begin(decision.admit)
        return decision.wait_s

    def _next_apart(self) -> list[str]:
        """The next group to be run by itself, or as much of it as there is room for by now."""
        group = self._apart.popleft()
        if len(group) > self.policy.slots:
            self._apart.appendleft(group[self.policy.slots :])
        return group[: self.policy.slots]

    def _begin(self, ids: Sequence[str]) -> None:
        utterances = self.desk.begin(ids)
        if utterances:
            self.wear.count_batch()
            self._attempt(lambda: self._admit_all(utterances))

    def _admit_all(self, utterances: Sequence[Utterance]) -> Sequence[Chunk]:
        self.engine.admit(utterances)
        return ()

    def _step(self) -> None:
        rows, chars, began_s = len(self.desk.held_ids), self.desk.longest_chars, self.clock()
        chunks = self._attempt(self.engine.step, self._pace.usual_s(rows, chars))
        took_s = self.clock() - began_s
        self._step_s = max(took_s, _FORGET * self._step_s)
        self._steps += 1
        self._row_steps += rows
        if chunks is None:
            chunks = ()
        else:
            self._pace = self._pace.after(rows, chars, took_s)
        over = sum(self.desk.deliver(chunk) for chunk in chunks)
        self._finished += over
        if over:
            self._resize(self._room.went_well(rows, over))
        self.desk.tell_progress()

    def _attempt(
        self, act: Callable[[], Sequence[Chunk]], usual_s: float = 0.0
    ) -> Sequence[Chunk] | None:
        """What the engine does; None when it failed, which has been dealt with then."""
        try:
            with self._calling(usual_s):
                return act()
        except Exception as error:  # noqa: BLE001 - an engine may raise whatever it likes
            self._recover(error)
            return None

    @contextmanager
    def _calling(self, usual_s: float = 0.0) -> Iterator[None]:
        """Let vitals tell for how long the engine has been at it: any call of it may hang."""
        self._call = _Call(self.clock(), usual_s)
        try:
            yield
        finally:
            self._call = None

    def _recover(self, error: Exception) -> None:
        ids = self.desk.held_ids
        log.warning("a batch of %d failed: %s", len(ids), _where(error))
        self._drop(ids)
        if len(ids) == 1:
            with self._calling():
                speak_canary(self.engine)
            self._close(ids[0], error)
            return
        if isinstance(error, MemoryError):
            self._resize(self._room.ran_out(len(ids)))
        self.desk.put_back(ids)
        first, _ = halves(len(ids))
        self._apart.extendleft([ids[first:], ids[:first]])

    def _close(self, id_: str, error: Exception) -> None:
        """End an utterance that failed by itself on an engine that is well."""
        if isinstance(error, MemoryError) and self._shortages.forgives(self.desk.utterance(id_)):
            self.desk.give_back(id_, "the device was short of memory")
        else:
            self.desk.fail(id_, f"the engine failed on this text: {type(error).__name__}")

    def _resize(self, room: Room) -> None:
        if room.at_most != self._room.at_most:
            log.warning(
                "memory: from now on at most %d at once, not %d", room.at_most, self._room.at_most
            )
            self.policy = replace(self.policy, slots=room.at_most)
        self._room = room

    def _drop(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        try:
            with self._calling():
                self.engine.drop(ids)
        except Exception as error:
            raise BrokenEngineError(f"the engine cannot drop: {_where(error)}") from error


def _where(error: Exception) -> str:
    """What was raised and in which line, without its message: that might quote a text."""
    frames = traceback.extract_tb(error.__traceback__)
    line = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{line}"
