"""When a host makes room for a new one."""

import pytest

from worker.host.wear import Wear, WearLimits


class Machine:
    """Memory and a clock that the test moves."""

    def __init__(self) -> None:
        self.bytes, self.now_s = 300_000_000, 0.0

    def wear(self, **limits: float) -> Wear:
        return Wear(WearLimits(**limits), memory=lambda: self.bytes, clock=lambda: self.now_s)  # type: ignore[arg-type]

    def grow(self, megabytes: int) -> None:
        self.bytes += megabytes * 1_000_000
        self.now_s += 2.0


def test_without_limits_a_host_serves_for_ever() -> None:
    machine = Machine()
    wear = machine.wear()
    for _ in range(1_000):
        wear.count_batch()
    machine.grow(100_000)
    assert wear.worn() is None


def test_a_host_is_worn_after_its_batches() -> None:
    wear = Machine().wear(max_batches=2)
    wear.count_batch()
    assert wear.worn() is None
    wear.count_batch()
    assert wear.worn() == "it has served 2 batches"


def test_a_host_is_worn_when_it_has_grown_since_its_first_batch() -> None:
    machine = Machine()
    wear = machine.wear(max_growth_mb=100)
    machine.grow(500)  # loading is no growth
    wear.count_batch()
    machine.grow(90)
    assert wear.worn() is None
    machine.grow(20)
    assert wear.worn() == "it has grown by 110 MB"


def test_limits_that_are_none_are_refused() -> None:
    for wrong in ({"max_batches": -1}, {"max_growth_mb": -1}, {"max_growth_mb": float("nan")}):
        with pytest.raises(ValueError, match="must"):
            WearLimits(**wrong)  # type: ignore[arg-type]
