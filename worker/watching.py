"""Tells the threads of a consumer soon which jobs have ended or stand still, by one look for all.

Without it a cancelled job would hold its slots until its leases are next renewed, and a paused one
until all that was claimed of it is spoken. Knows no host and no segment.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from shared.errors import TransientError

log = logging.getLogger(__name__)
LOOK_EVERY_S = 0.2  # shorter than a full batch takes on a fast device


class JobWatch:
    """Which of the jobs at work here still render, and which of those are paused. Thread-safe.

    `read` returns those of the given jobs that render, by whether they are paused; it may raise
    TransientError. Whoever asks when the last look is old looks anew, for all; meanwhile the others
    go by what is known.
    """

    def __init__(
        self,
        read: Callable[[Collection[str]], Mapping[str, bool]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._here: Counter[str] = Counter()
        self._ended: frozenset[str] = frozenset()
        self._paused: frozenset[str] = frozenset()
        self._looked_at = float("-inf")

    @contextmanager
    def watching(self, job_id: str) -> Iterator[None]:
        """Have a job looked at while the block runs."""
        with self._lock:
            self._here[job_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._here[job_id] -= 1
                if not self._here[job_id]:
                    del self._here[job_id]

    def has_ended(self, job_id: str) -> bool:
        """Whether a watched job has stopped to render, as far as is known.

        With the ledger away nothing new is known: leases decide then, as they always do.
        """
        self._look()
        return job_id in self._ended

    def is_paused(self, job_id: str) -> bool:
        """Whether a watched job stands still, as far as is known."""
        self._look()
        return job_id in self._paused

    def _look(self) -> None:
        wanted = self._whom_to_look_at()
        if not wanted:
            return
        try:
            rendering = self._read(wanted)
        except TransientError as error:
            log.warning("cannot look after jobs: %s", error)
            return
        with self._lock:
            self._ended = frozenset(wanted) - rendering.keys()
            self._paused = frozenset(job_id for job_id, paused in rendering.items() if paused)

    def _whom_to_look_at(self) -> list[str]:
        with self._lock:
            if self._clock() - self._looked_at < LOOK_EVERY_S:
                return []
            self._looked_at = self._clock()
            return list(self._here)
