"""Lets one sentence have a consumer to itself, and tries out beforehand whether all is well there.

Knows no ledger: which sentence must be alone is the caller's business.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shared.errors import HostLostError, TransientError, UtteranceError
from worker.assembly.segment_audio import encode_segment
from worker.engines.base import Utterance
from worker.host.canary import CANARY_TEXT
from worker.host.link import HostLink

_ASK_EVERY_S = 0.2


class Solitude:
    """Threads that work here among others, until one of them needs to be alone. Thread-safe.

    Whoever comes while one is alone, or waits for it, waits outside. Those who need to be alone
    follow one another.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._here = 0
        self._wanting = 0
        self._taken = False

    @contextmanager
    def among_others(self) -> Iterator[None]:
        """Work beside others; waits while somebody is alone, or is going to be."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken and not self._wanting)
            self._here += 1
        try:
            yield
        finally:
            with self._changed:
                self._here -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, while_waiting: Callable[[], None]) -> Iterator[None]:
        """From among others: wait until they have left, and keep new ones out until the end.

        `while_waiting` is called a few times a second; what it raises ends the wait.
        """
        with self._changed:
            self._here -= 1
            self._wanting += 1
            self._changed.notify_all()
        try:
            while not self._take():
                while_waiting()
        except BaseException:
            with self._changed:
                self._wanting -= 1
                self._here += 1
                self._changed.notify_all()
            raise
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._here += 1
                self._changed.notify_all()

    def _take(self) -> bool:
        with self._changed:
            if not self._changed.wait_for(lambda: not self._taken and not self._here, _ASK_EVERY_S):
                return False
            self._wanting -= 1
            self._taken = True
            return True


def try_canary(host: HostLink, *, on_progress: Callable[[], None]) -> None:
    """Have a phrase that is known to be good spoken, and encode it.

    Raises TransientError when it is not: this node is in no state to judge anybody's text.
    """
    info = host.info()
    phrase = Utterance(
        id="canary",
        text=CANARY_TEXT,
        voice=info.default_voice,
        language=info.languages[0],
        speed=1.0,
        seed=0,
    )
    try:
        samples = host.synthesize(phrase, on_progress=on_progress, alone=True)
    except (HostLostError, UtteranceError) as error:
        raise TransientError(f"not even {CANARY_TEXT!r} is spoken here: {error}") from error
    encode_segment(samples, info.sample_rate_hz)
