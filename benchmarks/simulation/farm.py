"""The farm in simulated time: windows, queues, consumers' threads, hosts with the real policy.

Knows no order of dispatch: that is the `Dispatch` it is given. What a sentence costs outside the
device (claim, encoding, upload, commit) is `TAIL_S`, during which its thread is busy.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import ceil
from typing import Protocol

from benchmarks.simulation.device import DEVICE, Device
from benchmarks.simulation.work import Sent, SimJob
from worker.batching.given import Given
from worker.batching.policy import Policy, Waiting

TAIL_S = 0.02
_TICK_S = 1e-6  # so that a host asked to wait is asked again after its wait, not at its end


class Dispatch(Protocol):
    """Decides the order of sending. A lane has a window and consumers; its queues share them."""

    lanes: Sequence[Sequence[str]]

    def arrive(self, job: SimJob) -> int:
        """Take a job in; returns its lane."""
        ...

    def fill(self, lane: int, room: int, now_s: float) -> Sequence[tuple[str, Sent]]:
        """Send up to `room` sentences: (queue, sentence), in order."""
        ...

    def order(self, sent: Sent, number: int) -> tuple[str, float, float]:
        """What hosts order it by: tier, due time, seconds by which it comes after others.

        `number` counts what is sent.
        """
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """How a farm is set up: its windows in device slots, by lane, and when they are filled up."""

    gpus: int
    window_slots: float = 3.0
    rush_window_slots: float = 3.0
    low_water: float = 0.5
    threads_slots: float = 2.0  # of each lane's consumer on each node; two for a rush lane
    least_window: int = 8
    step_s: float = 0.0  # what hosts expect of a full batch; 0: they keep no due times
    device: Device = DEVICE

    def threads(self, lanes: int) -> list[int]:
        """The threads of each lane's consumer on a node."""
        slots = [self.threads_slots] * lanes
        if lanes > 1:
            slots[0] = 2.0
        return [ceil(s * self.device.slots) for s in slots]

    def windows(self, lanes: int) -> list[int]:
        """The window of each lane, in sentences; of several lanes the first is rush's."""
        slots = [self.window_slots] * lanes
        if lanes > 1:
            slots[0] = self.rush_window_slots
        return [max(self.least_window, round(s * self.device.slots * self.gpus)) for s in slots]


@dataclass(slots=True, eq=False)
class _Node:
    free: list[int]  # threads, by lane
    waiting: dict[str, Waiting] = field(default_factory=dict)
    owners: dict[str, tuple[int, Sent]] = field(default_factory=dict)
    busy: bool = False
    given: Given = field(default_factory=Given)


class Farm:
    """Runs jobs through a farm. One run per instance; deterministic."""

    def __init__(self, dispatch: Dispatch, layout: Layout, policy: Policy) -> None:
        lanes = len(dispatch.lanes)
        self.now_s = 0.0
        self.batches = 0
        self.sentences = 0
        self.on_done: Callable[[Sent, float], None] = lambda _sent, _now_s: None
        self._dispatch = dispatch
        self._layout = layout
        self._policy = policy
        self._windows = layout.windows(lanes)
        self._in_flight = [0] * lanes
        self._nodes = [_Node(layout.threads(lanes)) for _ in range(layout.gpus)]
        # Redis serves consumers in the order in which they began to wait.
        self._idle = [deque(range(layout.gpus)) for _ in range(lanes)]
        self._queues: list[dict[str, deque[Sent]]] = [
            {queue: deque() for queue in lane} for lane in dispatch.lanes
        ]
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._number = count()

    def run(self, jobs: Sequence[SimJob], *, until_s: float = float("inf")) -> None:
        """Render the jobs to the last sentence, or up to a moment."""
        for job in jobs:
            self._at(job.arrives_s, lambda job=job: self._arrive(job))  # type: ignore[misc]
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, act = heappop(self._events)
            act()

    def _at(self, when_s: float, act: Callable[[], None]) -> None:
        heappush(self._events, (when_s, next(self._order), act))

    def _arrive(self, job: SimJob) -> None:
        self._fill(self._dispatch.arrive(job))

    def _fill(self, lane: int) -> None:
        room = self._windows[lane] - self._in_flight[lane]
        if room > 0:
            letters = self._dispatch.fill(lane, room, self.now_s)
            self._in_flight[lane] += len(letters)
            for queue, sent in letters:
                self._queues[lane][queue].append(sent)
        self._pull(lane)

    def _pull(self, lane: int) -> None:
        idle, touched = self._idle[lane], dict[int, None]()
        while idle and (sent := self._take(lane)) is not None:
            index = idle.popleft()
            node = self._nodes[index]
            node.free[lane] -= 1
            if node.free[lane]:
                idle.append(index)
            number = next(self._number)
            tier, due_at, after_s = self._dispatch.order(sent, number)
            id_ = str(number)
            chars, arrived_s = sent.job.chars[sent.place], self.now_s + after_s
            node.waiting[id_] = Waiting(id_, tier, due_at, chars, arrived_s)
            node.owners[id_] = (lane, sent)
            touched[index] = None
        for index in touched:
            self._start(index)

    def _take(self, lane: int) -> Sent | None:
        """The next message of a lane: its queues in turn, as the consumers' client takes them."""
        queues = self._queues[lane]
        for name in list(queues):
            queues[name] = queue = queues.pop(name)  # the one asked goes to the end of the round
            if queue:
                return queue.popleft()
        return None

    def _start(self, index: int) -> None:
        node = self._nodes[index]
        if node.busy or not node.waiting:
            return
        decision = self._policy.decide(
            node.waiting.values(),
            (),
            may_arrive=sum(node.free),
            now_s=self.now_s,
            due_clock_s=self.now_s,
            step_s=self._layout.step_s,
            given=node.given,
        )
        if decision.admit:
            node.busy = True
            node.given = node.given.after(
                node.waiting.values(), decision.admit, due_clock_s=self.now_s
            )
            for id_ in decision.admit:
                del node.waiting[id_]
            self.batches += 1
            self.sentences += len(decision.admit)
            done_s = self.now_s + self._layout.device.batch_s(len(decision.admit))
            self._at(done_s, lambda: self._finish(index, decision.admit))
        elif decision.wait_s is not None:
            self._at(self.now_s + decision.wait_s + _TICK_S, lambda: self._start(index))

    def _finish(self, index: int, ids: Sequence[str]) -> None:
        node = self._nodes[index]
        node.busy = False
        freed: dict[int, int] = {}
        for id_ in ids:
            lane, sent = node.owners.pop(id_)
            freed[lane] = freed.get(lane, 0) + 1
            job = sent.job
            job.done += 1
            job.first_done_s = min(job.first_done_s, self.now_s)
            if job.done == len(job.segments):
                job.last_done_s = self.now_s
            self.on_done(sent, self.now_s)
        self._at(self.now_s + TAIL_S, lambda: self._release(index, freed))
        self._start(index)

    def _release(self, index: int, freed: Mapping[int, int]) -> None:
        node = self._nodes[index]
        for lane, threads in freed.items():
            if node.free[lane] == 0:
                self._idle[lane].append(index)
            node.free[lane] += threads
            self._in_flight[lane] -= threads
            if self._in_flight[lane] < self._layout.low_water * self._windows[lane]:
                self._fill(lane)
            else:
                self._pull(lane)
