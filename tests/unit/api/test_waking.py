import threading
import time
from collections.abc import Callable

from api.waking import Waker
from shared.errors import BrokerError


class Queue:
    """Counts sendings, after waiting for `gate` and failing as often as told."""

    def __init__(self, *failures: Exception) -> None:
        self.tries = 0
        self.sent = 0
        self.gate = threading.Event()
        self.gate.set()
        self._failures = list(failures)

    def send(self) -> None:
        self.tries += 1
        self.gate.wait(20)
        if self._failures:
            raise self._failures.pop(0)
        self.sent += 1


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def started(queue: Queue) -> Waker:
    waker = Waker(queue.send)
    waker.start()
    return waker


def test_whoever_wakes_it_has_a_sending_begun_after_that() -> None:
    queue = Queue()
    waker = started(queue)
    for before in range(5):
        eventually(lambda b=before: queue.sent == b)  # type: ignore[misc]
        waker.wake()
    eventually(lambda: queue.sent == 5)
    waker.stop()


def test_all_that_come_during_a_sending_share_the_next() -> None:
    queue = Queue()
    queue.gate.clear()
    waker = started(queue)
    waker.wake()
    eventually(lambda: queue.tries == 1)
    for _ in range(1_000):
        waker.wake()
    queue.gate.set()
    eventually(lambda: queue.sent == 2)
    assert queue.tries == 2
    waker.stop()


def test_a_failed_sending_is_left_to_the_scheduler_and_the_next_one_goes() -> None:
    queue = Queue(BrokerError("away"), RuntimeError("unforeseen"))
    waker = started(queue)
    for tries in (1, 2, 3):
        waker.wake()
        eventually(lambda t=tries: queue.tries == t)  # type: ignore[misc]
    eventually(lambda: queue.sent == 1)
    waker.stop()


def test_what_was_asked_for_is_sent_before_the_end() -> None:
    queue = Queue()
    waker = started(queue)
    waker.wake()
    waker.stop(within_s=20)
    assert queue.sent >= 1


def test_a_queue_that_hangs_holds_neither_requests_nor_the_end() -> None:
    queue = Queue()
    queue.gate.clear()
    waker = started(queue)
    for _ in range(3_000):
        waker.wake()
    waker.stop(within_s=0.05)
    assert queue.sent == 0
    queue.gate.set()
    eventually(lambda: queue.sent > 0)
