import threading
import time
from collections.abc import Callable, Sequence

from api.waking import MOST_WAITING, Waker
from shared.errors import BrokerError


class Queue:
    """Takes steps down, after waiting for `gate` and failing as often as told."""

    def __init__(self, *failures: Exception) -> None:
        self.sent: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self._failures = list(failures)

    def send(self, step_ids: Sequence[str]) -> None:
        self.gate.wait(20)
        if self._failures:
            raise self._failures.pop(0)
        self.sent.append(list(step_ids))


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def started(queue: Queue) -> Waker:
    waker = Waker(queue.send)
    waker.start()
    return waker


def test_steps_are_sent_in_order_and_before_the_end() -> None:
    queue = Queue()
    waker = started(queue)
    for step in "abc":
        waker.wake(step)
    waker.stop()
    assert [step for batch in queue.sent for step in batch] == ["a", "b", "c"]


def test_what_comes_during_a_sending_goes_together_in_the_next() -> None:
    queue = Queue()
    queue.gate.clear()
    waker = started(queue)
    waker.wake("first")
    time.sleep(0.1)
    for step in "abc":
        waker.wake(step)
    queue.gate.set()
    eventually(lambda: len(queue.sent) == 2)
    assert queue.sent == [["first"], ["a", "b", "c"]]
    waker.stop()


def test_a_failed_sending_is_left_to_the_scheduler_and_the_next_one_goes() -> None:
    queue = Queue(BrokerError("away"), RuntimeError("unforeseen"))
    waker = started(queue)
    for step in "abc":
        waker.wake(step)
        time.sleep(0.05)
    waker.stop()
    assert queue.sent == [["c"]]


def test_a_queue_that_hangs_holds_neither_requests_nor_the_end() -> None:
    queue = Queue()
    queue.gate.clear()
    waker = started(queue)
    began = time.monotonic()
    for step in range(3 * MOST_WAITING):
        waker.wake(str(step))
    waker.stop(within_s=0.05)
    assert time.monotonic() - began < 5
    queue.gate.set()
    eventually(lambda: bool(queue.sent))
