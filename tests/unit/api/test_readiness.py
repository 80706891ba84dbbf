import asyncio
import threading
import time

from api.readiness import Readiness
from shared.errors import StoreError


def test_every_part_is_asked_at_once_and_reported_by_name() -> None:
    def slow() -> str:
        time.sleep(0.3)
        return "fine"

    def away() -> str:
        raise StoreError("the store is away")

    def broken() -> str:
        raise ZeroDivisionError

    began = time.monotonic()
    checks = {"a": slow, "b": slow, "c": away, "d": broken}
    seen = asyncio.run(Readiness(checks).look())
    assert time.monotonic() - began < 0.55
    assert {name: (check.ok, check.detail) for name, check in seen.items()} == {
        "a": (True, "fine"),
        "b": (True, "fine"),
        "c": (False, "the store is away"),
        "d": (False, "ZeroDivisionError"),
    }


def test_a_part_that_does_not_answer_fails_in_time() -> None:
    released = threading.Event()

    def hangs() -> str:
        released.wait(20)
        return "too late"

    async def look() -> float:
        began = time.monotonic()
        check = (await Readiness({"x": hangs}, timeout_s=0.05).look())["x"]
        assert (check.ok, check.detail) == (False, "no answer within 0.05 s")
        waited_s = time.monotonic() - began
        released.set()
        return waited_s

    assert asyncio.run(look()) < 2


def test_a_flood_of_probes_is_one_question_a_second() -> None:
    asked = 0
    now = 100.0

    def count() -> str:
        nonlocal asked
        asked += 1
        return "fine"

    async def flood() -> None:
        nonlocal now
        readiness = Readiness({"x": count}, clock=lambda: now)
        await asyncio.gather(*(readiness.look() for _ in range(50)))
        assert asked == 1
        now += 1.1
        await asyncio.gather(*(readiness.look() for _ in range(50)))
        assert asked == 2

    asyncio.run(flood())
