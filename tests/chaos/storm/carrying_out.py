"""Carries out the faults of a plan, by their names."""

import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import psycopg
import redis

from tests.chaos.storm.ground import Ground
from tests.chaos.storm.messages import Reorder, SendTwice
from tests.chaos.storm.network import HalfOpen, postgres_port
from tests.chaos.storm.plan import FROZEN, KINDS, TOLD_TO_STOP, Squall, Stroke
from tests.chaos.storm.processes import (
    Freeze,
    Kill,
    KillServer,
    KillSupervisor,
    RefuseWebhooks,
    StopServer,
    Terminate,
)
from tests.chaos.storm.stores import (
    EmptyRedis,
    FillDisk,
    FlushRedis,
    HoldDatabaseLock,
    RestartDatabase,
    StepClock,
)

_AWAY = (redis.ConnectionError, redis.TimeoutError, psycopg.OperationalError)
_AGAIN_S, _PATIENCE_S = 0.5, 120.0


class Strike(Protocol):
    """A fault about to happen. `end` is called once after `begin` has done its work."""

    def begin(self) -> None: ...
    def end(self) -> None: ...


_MADE: Mapping[str, Callable[[Ground, int], Strike]] = {
    "kill valkey": lambda ground, _: KillServer(ground, "valkey", ground.redis_answers),
    "kill seaweedfs": lambda ground, _: KillServer(ground, "seaweedfs", ground.store_answers),
    "kill supervisor": lambda ground, _: KillSupervisor(ground),
    "flush redis": lambda ground, _: FlushRedis(ground),
    "empty restart of redis": lambda ground, _: EmptyRedis(ground),
    "stop store": lambda ground, _: StopServer(ground, "seaweedfs"),
    "stop redis": lambda ground, _: StopServer(ground, "valkey"),
    "send messages twice": SendTwice,
    "reorder messages": Reorder,
    "stop database": lambda ground, _: RestartDatabase(ground),
    "restart database at once": lambda ground, _: RestartDatabase(ground),
    "step database clock": StepClock,
    "hold database lock": lambda ground, _: HoldDatabaseLock(ground),
    "refuse webhooks": lambda ground, _: RefuseWebhooks(ground),
    "half-open redis": lambda ground, _: HalfOpen(ground.address("redis")),
    "half-open store": lambda ground, _: HalfOpen(ground.address("store")),
    "half-open database": lambda ground, _: HalfOpen(postgres_port(ground)),
    "fill disk of store": lambda ground, _: FillDisk(ground),
}


def strike(ground: Ground, stroke: Stroke) -> Strike:
    """The fault that a stroke names."""
    if stroke.fault in _MADE:
        return _MADE[stroke.fault](ground, stroke.seed)
    verb, _, kind = stroke.fault.partition(" ")
    made, kinds = {
        "kill": (Kill, KINDS),
        "freeze": (Freeze, FROZEN),
        "terminate": (Terminate, TOLD_TO_STOP),
    }[verb]
    assert kind in kinds
    return made(ground, kind, stroke.seed)


def carry_out(ground: Ground, squall: Squall) -> None:
    """Let a squall's faults begin and end in their order of time; returns when the last is over.

    One that goes by way of a store which another of them has taken away waits for its return.
    """
    began_s, order = time.monotonic(), itertools.count()
    due: list[tuple[float, int, Stroke, Strike]] = [
        (stroke.after_s, next(order), stroke, strike(ground, stroke)) for stroke in squall.strokes
    ]
    heapq.heapify(due)
    begun = set[int]()
    while due:
        at_s, number, stroke, made = heapq.heappop(due)
        time.sleep(max(0.0, began_s + at_s - time.monotonic()))
        if number in begun:
            made.end()
            continue
        try:
            made.begin()
        except _AWAY:
            if at_s > stroke.after_s + _PATIENCE_S:
                raise
            heapq.heappush(due, (at_s + _AGAIN_S, number, stroke, made))
        else:
            begun.add(number)
            heapq.heappush(due, (at_s + stroke.lasts_s, number, stroke, made))
