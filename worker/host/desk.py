"""Keeps account of every utterance in the house, and answers the links that asked for them.

Knows no engine and no policy: the loop says what begins, what came out and what failed. Ids in here
are the desk's own, unique over all connections; links see theirs.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from shared.errors import UtteranceError
from shared.voices import EngineInfo
from worker.batching.policy import Held, Waiting
from worker.engines.base import Chunk, Utterance
from worker.host.events import Say
from worker.host.protocol import check_utterance, pack_samples

log = logging.getLogger(__name__)

MAX_IN_FLIGHT = 64  # of one connection
PROGRESS_EVERY_S = 0.5


class Outlet(Protocol):
    """Where answers go."""

    @property
    def senders(self) -> int:
        """How many links are connected."""
        ...

    def send(self, connection: int, header: Mapping[str, object], payload: bytes = b"") -> None:
        """Send a frame to a link."""
        ...

    def hang_up(self, connection: int) -> None:
        """Close a link's connection."""
        ...


@dataclass(slots=True, eq=False)
class _Ticket:
    connection: int
    link_id: str
    utterance: Utterance
    alone: bool
    arrived_s: float
    group: str  # equal for utterances that may share a batch
    samples_sent: int = 0


@dataclass(slots=True)
class Desk:
    """The utterances that wait and those that are on the device. Single-threaded."""

    info: EngineInfo
    outlet: Outlet
    clock: Callable[[], float] = time.monotonic
    _waiting: dict[str, _Ticket] = field(default_factory=dict)
    _held: dict[str, _Ticket] = field(default_factory=dict)
    _count: int = 0
    _progress_s: float = 0.0

    @property
    def held_ids(self) -> list[str]:
        """What is on the device."""
        return list(self._held)

    @property
    def longest_chars(self) -> int:
        """Of the texts on the device, the longest."""
        return max((len(t.utterance.text) for t in self._held.values()), default=0)

    @property
    def waiting_ids(self) -> list[str]:
        """What is not."""
        return list(self._waiting)

    @property
    def may_arrive(self) -> int:
        """How many links are connected and have nothing here."""
        busy = {t.connection for t in (*self._waiting.values(), *self._held.values())}
        return max(0, self.outlet.senders - len(busy))

    def waiting(self) -> list[Waiting]:
        """What waits, as the policy sees it."""
        return [
            Waiting(
                id=id_,
                tier=t.utterance.tier,
                due_at=t.utterance.due_at,
                chars=len(t.utterance.text),
                arrived_s=t.arrived_s,
                group=t.group,
                alone=t.alone,
            )
            for id_, t in self._waiting.items()
        ]

    def held(self) -> list[Held]:
        """What is on the device, as the policy sees it."""
        return [Held(t.utterance.tier, t.group, t.alone) for t in self._held.values()]

    def accept(self, say: Say) -> None:
        """Take an utterance in, or answer at once that this engine cannot say it."""
        mine = [
            t.link_id
            for t in (*self._waiting.values(), *self._held.values())
            if t.connection == say.connection
        ]
        if len(mine) >= MAX_IN_FLIGHT or say.utterance.id in mine:
            log.warning("hanging up on connection %d: an id twice, or too many", say.connection)
            self.outlet.hang_up(say.connection)
            return
        self._count += 1
        id_ = str(self._count)
        ticket = _Ticket(
            say.connection,
            say.utterance.id,
            replace(say.utterance, id=id_),
            say.alone,
            self.clock(),
            _group(say.utterance, self.info),
        )
        try:
            check_utterance(say.utterance, self.info)
        except UtteranceError as error:
            self._answer(ticket, "error", message=str(error))
        else:
            self._waiting[id_] = ticket

    def withdraw(self, connection: int, link_id: str | None = None) -> list[str]:
        """Forget one utterance of a connection, or all; returns ids the engine must drop."""

        def forget(tickets: dict[str, _Ticket]) -> list[str]:
            ids = [
                id_
                for id_, t in tickets.items()
                if t.connection == connection and link_id in (None, t.link_id)
            ]
            for id_ in ids:
                del tickets[id_]
            return ids

        forget(self._waiting)
        return forget(self._held)

    def begin(self, ids: Iterable[str]) -> list[Utterance]:
        """Move waiting utterances to the device; those withdrawn meanwhile are left out."""
        begun = [self._waiting.pop(id_) for id_ in ids if id_ in self._waiting]
        self._held.update((t.utterance.id, t) for t in begun)
        for ticket in begun:
            self._answer(ticket, "started", held=len(self._held))
        return [t.utterance for t in begun]

    def put_back(self, ids: Collection[str]) -> None:
        """Move utterances from the device to where they wait; their audio begins anew."""
        for id_ in ids:
            ticket = self._held.pop(id_)
            if ticket.samples_sent:
                ticket.samples_sent = 0
                self._answer(ticket, "restarted")
            self._waiting[id_] = ticket

    def deliver(self, chunk: Chunk) -> bool:
        """Send audio to the link that asked; True when that utterance is over."""
        ticket = self._held.get(chunk.utterance_id)
        if ticket is None:  # withdrawn meanwhile
            return False
        fault = chunk.error or _fault(chunk, ticket)
        if fault is not None:
            self.fail(chunk.utterance_id, fault)
            return True
        ticket.samples_sent += len(chunk.samples)
        header = {"op": "chunk", "id": ticket.link_id, "final": chunk.final}
        self.outlet.send(ticket.connection, header, pack_samples(chunk.samples))
        if chunk.final:
            del self._held[chunk.utterance_id]
        return chunk.final

    def fail(self, id_: str, message: str) -> None:
        """Close an utterance as its own fault."""
        ticket = self._held.pop(id_)
        self._answer(ticket, "error", message=message)

    def utterance(self, id_: str) -> Utterance:
        """One of those on the device."""
        return self._held[id_].utterance

    def give_back(self, id_: str, reason: str) -> None:
        """Have an utterance on the device asked for again; it is not its own fault."""
        self._answer(self._held.pop(id_), "lost", reason=reason)

    def turn_away(self, reason: str) -> None:
        """Tell all that wait to ask another host."""
        for ticket in self._waiting.values():
            self._answer(ticket, "lost", reason=reason)
        self._waiting.clear()

    def tell_progress(self) -> None:
        """Let every link with something here know, twice a second at most, that work goes on."""
        now_s = self.clock()
        if now_s - self._progress_s < PROGRESS_EVERY_S:
            return
        self._progress_s = now_s
        header = {"op": "progress", "held": len(self._held)}
        for connection in {t.connection for t in (*self._waiting.values(), *self._held.values())}:
            self.outlet.send(connection, header)

    def _answer(self, ticket: _Ticket, op: str, **fields: object) -> None:
        self.outlet.send(ticket.connection, {"op": op, "id": ticket.link_id, **fields})


def _group(utterance: Utterance, info: EngineInfo) -> str:
    apart = [getattr(utterance, name) for name in info.batch_by]
    return repr((sorted(utterance.params.items()), apart))


def _fault(chunk: Chunk, ticket: _Ticket) -> str | None:
    """Why a chunk cannot be passed on, if so: an engine's mistake must not become a gap."""
    samples = chunk.samples
    if samples.ndim != 1 or samples.dtype != np.float32:
        return "the engine returned something that is not mono float32"
    if not np.isfinite(samples).all():
        return "the engine returned samples that are not numbers"
    if chunk.final and ticket.samples_sent + len(samples) == 0:
        return "the engine returned no audio"
    return None
