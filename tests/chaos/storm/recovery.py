"""How soon after a squall the farm works again, as read from ledger and queues. Knows no fault.

Two times, both from the end of the squall's last fault: until a message that no worker had in hand
by then is delivered, and its segment claimed; and until nothing that was in flight when the squall
began lies about forgotten. What was leased must have been settled, dispatched anew, or renewed by
its holder; what was dispatched must have been claimed, dispatched anew, or wait in its queue.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection, select

from shared.errors import BrokerError
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.segments import SegmentState
from shared.steps import StepState

_LOOK_S = 0.2
_STEP_IN_FLIGHT = t.step.c.state.in_((StepState.DISPATCHED, StepState.LEASED))


@dataclass(frozen=True, slots=True)
class Recovered:
    """Seconds after the end of a squall; None: not within the time given."""

    again_s: float | None
    whole_s: float | None
    struck: int


@dataclass(frozen=True, slots=True)
class Flight:
    """How one segment or step was on its way. `lease_until` None: dispatched, not yet claimed."""

    dispatch_no: int
    token: int
    lease_until: float | None

    def same_claim(self, other: "Flight") -> bool:
        """Whether nothing but its lease may have changed."""
        return replace(self, lease_until=None) == replace(other, lease_until=None)


InFlight = Mapping[str, Flight]  # by "job.index" or step id, as messages are named


@dataclass(frozen=True, slots=True)
class Queues:
    """Ids of messages: those that wait, and those that a worker has in hand."""

    waiting: frozenset[str]
    taken: frozenset[str]


def in_flight(database: Database) -> InFlight:
    """What is dispatched or leased now."""
    return database.read(_read_in_flight)


def recovered(
    database: Database, before: InFlight, look: Callable[[], Queues], *, within_s: float
) -> Recovered:
    """Watch until the farm works again and none of what was in flight before is forgotten.

    `look` reads the queues; it may raise BrokerError.
    """
    began_s = time.monotonic()
    at_end, claims = in_flight(database), database.read(_claims)
    in_hand = _in_hand(look)
    struck = {name: at_end[name] for name in before if _is_still(before[name], at_end.get(name))}
    again_s = whole_s = None
    while (now_s := time.monotonic() - began_s) < within_s:
        if again_s is None and _anew(claims, database.read(_claims), in_hand):
            again_s = now_s
        if whole_s is None and not _forgotten(struck, in_flight(database), look):
            whole_s = now_s
        if again_s is not None and whole_s is not None:
            break
        time.sleep(_LOOK_S)
    return Recovered(again_s, whole_s, len(before))


def _in_hand(look: Callable[[], Queues]) -> Collection[str]:
    """Names of what workers had in hand, whose claims say nothing of the queues."""
    try:
        return {task_id.rpartition(".")[0] for task_id in look().taken}
    except BrokerError:
        return ()


def _anew(before: Mapping[str, int], now: Mapping[str, int], in_hand: Collection[str]) -> bool:
    return any(token > before.get(name, 0) and name not in in_hand for name, token in now.items())


def _is_still(flight: Flight, now: Flight | None) -> bool:
    return now is not None and flight.same_claim(now)


def _forgotten(struck: InFlight, now: InFlight, look: Callable[[], Queues]) -> Collection[str]:
    unmoved = {n: f for n, f in struck.items() if _is_still(f, now.get(n))}
    leased = [
        name
        for name, flight in unmoved.items()
        if flight.lease_until is not None and flight.lease_until >= (now[name].lease_until or 0.0)
    ]
    waiting = [name for name, flight in unmoved.items() if flight.lease_until is None]
    if leased or not waiting:
        return leased
    try:
        queues = look()
    except BrokerError:
        return waiting
    held = queues.waiting | queues.taken
    return [name for name in waiting if f"{name}.{struck[name].dispatch_no}" not in held]


def _read_in_flight(conn: Connection) -> InFlight:
    s, p = t.segment.c, t.step.c
    segments = conn.execute(
        select(
            s.job_id, s.index.label("number"), s.state, s.dispatch_no, s.token, s.lease_until
        ).where(t.IS_IN_FLIGHT)
    )
    found = {
        f"{row.job_id}.{row.number}": Flight(
            row.dispatch_no,
            row.token,
            row.lease_until if row.state == SegmentState.LEASED else None,
        )
        for row in segments
    }
    steps = conn.execute(
        select(p.id, p.state, p.dispatch_no, p.token, p.lease_until).where(_STEP_IN_FLIGHT)
    )
    return found | {
        row.id: Flight(
            row.dispatch_no, row.token, row.lease_until if row.state == StepState.LEASED else None
        )
        for row in steps
    }


def _claims(conn: Connection) -> Mapping[str, int]:
    """The newest token of every segment that was ever claimed."""
    s = t.segment.c
    rows = conn.execute(select(s.job_id, s.index.label("number"), s.token).where(s.token > 0))
    return {f"{row.job_id}.{row.number}": row.token for row in rows}
