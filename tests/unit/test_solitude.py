"""One sentence has a consumer to itself, whoever comes and goes."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from worker.solitude import Solitude

DEADLINE_S = 30.0


class Watched:
    """Who is inside, and who was there beside one that had to be alone."""

    def __init__(self) -> None:
        self.solitude = Solitude()
        self.lock = threading.Lock()
        self.inside = 0
        self.beside_the_lonely: list[int] = []

    def work(self, *, alone: bool) -> None:
        with self.solitude.among_others():
            if not alone:
                self._stay(lambda _others: None)
                return
            with self.solitude.alone(lambda: None):
                self._stay(self.beside_the_lonely.append)

    def _stay(self, look: Callable[[int], None]) -> None:
        with self.lock:
            self.inside += 1
        for _ in range(50):
            threading.Event().wait(0.0002)
            with self.lock:
                look(self.inside - 1)
        with self.lock:
            self.inside -= 1


def test_nobody_is_beside_one_that_must_be_alone_and_all_get_their_turn() -> None:
    watched = Watched()
    with ThreadPoolExecutor(16) as pool:
        done = [pool.submit(watched.work, alone=n % 5 == 0) for n in range(60)]
        for future in done:
            future.result(DEADLINE_S)
    assert set(watched.beside_the_lonely) == {0}
    assert len(watched.beside_the_lonely) == 12 * 50


def test_whoever_gives_up_waiting_lets_the_others_in_again() -> None:
    solitude, here, leave = Solitude(), threading.Event(), threading.Event()

    def stay() -> None:
        with solitude.among_others():
            here.set()
            leave.wait(DEADLINE_S)

    def lose_patience() -> None:
        raise TimeoutError

    with ThreadPoolExecutor(2) as pool:
        stays = pool.submit(stay)
        assert here.wait(DEADLINE_S)
        with (
            solitude.among_others(),
            pytest.raises(TimeoutError),
            solitude.alone(lose_patience),
        ):
            raise AssertionError("it is not alone")
        comes = pool.submit(lambda: solitude.among_others().__enter__())
        comes.result(DEADLINE_S)
        leave.set()
        stays.result(DEADLINE_S)
