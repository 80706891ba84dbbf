"""Faults of all queues, deliveries' too: messages that come twice, and in another order."""

import json
import random
from typing import Protocol

import redis

from tests.chaos.storm.ground import QUEUES

_MOST = 100
_SHUFFLE = """
local waiting = redis.call('LRANGE', KEYS[1], 0, -1)
if #waiting < 2 then return 0 end
math.randomseed(tonumber(ARGV[1]))
for i = #waiting, 2, -1 do
  local j = math.random(i)
  waiting[i], waiting[j] = waiting[j], waiting[i]
end
redis.call('DEL', KEYS[1])
for _, message in ipairs(waiting) do redis.call('RPUSH', KEYS[1], message) end
return #waiting
"""


class HasRedis(Protocol):
    """Where the queues lie."""

    def redis(self) -> redis.Redis:
        """A client, to be closed."""
        ...


class SendTwice:
    """Messages that wait, and messages that workers have in hand, are queued once more."""

    def __init__(self, ground: HasRedis, seed: int) -> None:
        self._ground, self._seed = ground, seed

    def begin(self) -> None:
        dice = random.Random(self._seed)
        with self._ground.redis() as client:
            copies = [(queue, raw) for queue in QUEUES for raw in client.lrange(queue, 0, -1)]
            taken = [json.loads(entry) for entry in client.hvals("unacked")]
            copies += [(queue, json.dumps(message)) for message, _exchange, queue in taken]
            for queue, raw in dice.sample(copies, min(_MOST, len(copies))):
                dice.choice((client.lpush, client.rpush))(queue, raw)

    def end(self) -> None:
        """It is over at once."""


class Reorder:
    """What waits in the queues is shuffled."""

    def __init__(self, ground: HasRedis, seed: int) -> None:
        self._ground, self._seed = ground, seed

    def begin(self) -> None:
        with self._ground.redis() as client:
            for queue in QUEUES:
                client.eval(_SHUFFLE, 1, queue, str(self._seed))

    def end(self) -> None:
        """It is over at once."""
