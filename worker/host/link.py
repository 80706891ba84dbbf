"""The other end of an engine host: what a consumer thread calls to have an utterance spoken.

Knows no Celery and no ledger. Every thread gets a connection of its own, made when it first needs
one and made anew after a failure, so a HostLink outlives any number of hosts at its path.
"""

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from shared.errors import HostLostError, TransientError
from shared.voices import EngineInfo
from worker.engines.base import Samples, Utterance
from worker.host.line import Line, Watchers
from worker.host.protocol import Vitals

_POLL_S = 0.02


class HostLink:
    """Speaks to the host at `socket_path`. Thread-safe; not to be carried over a fork.

    `silence_s`: a host that shows no sign of progress for so long, while it has our utterance, is
    given up as lost.
    """

    def __init__(self, socket_path: Path, *, silence_s: float) -> None:
        self._path = socket_path
        self._silence_s = silence_s
        self._threads = threading.local()
        self._info: EngineInfo | None = None
        self._lock = threading.Lock()
        self._lines: weakref.WeakSet[Line] = weakref.WeakSet()

    def info(self) -> EngineInfo:
        """What the engine says of itself; asked once. Raises TransientError if no host is there."""
        if self._info is None:
            self._line()
        if self._info is None:
            raise AssertionError("a connected line has greeted its host")
        return self._info

    def wait_ready(
        self, timeout_s: float, *, alive: Callable[[], bool] = lambda: True
    ) -> EngineInfo:
        """Wait until the host answers, which it does once its engine is warm.

        Raises HostLostError after `timeout_s`, or as soon as `alive()` is false.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                with self._lent() as line:
                    return line.info
            except TransientError as error:
                if not alive():
                    raise HostLostError("the engine host ended before it was ready") from error
                if time.monotonic() > deadline_s:
                    raise HostLostError(
                        f"the engine host was not ready within {timeout_s:g} s"
                    ) from error
            time.sleep(_POLL_S)

    def synthesize(
        self,
        utterance: Utterance,
        *,
        on_progress: Callable[[], None],
        on_idle: Callable[[], None] = lambda: None,
        on_waiting: Callable[[], None] = lambda: None,
        alone: bool = False,
    ) -> Samples:
        """Have an utterance spoken: float32 mono at the engine's rate.

        `on_progress` is called whenever the host shows that it, or its device, has moved on,
        `on_idle` a few times a second while it does not, and `on_waiting` after either as long as
        the host has not begun the utterance. If one of them raises, the host is told to drop the
        utterance and the exception goes on to the caller.
        `alone` asks for the device without neighbours.

        Raises UtteranceError when it is the utterance's own fault; HostLostError when the host died
        or fell silent with the utterance on its device (`companions` says how many others were
        there too); any other TransientError when the host was lost, or never found, before that, or
        gave it back for want of memory.
        """
        with self._lent() as line:
            return line.synthesize(
                utterance, Watchers(on_progress, on_idle, on_waiting), alone=alone
            )

    def ping(self) -> Vitals:
        """What the host has done so far. Raises TransientError if no host answers."""
        with self._lent() as line:
            return line.ping()

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            line.close()

    @contextlib.contextmanager
    def _lent(self) -> Iterator[Line]:
        line = self._line()
        try:
            yield line
        finally:
            if line.broken:
                self._discard(line)

    def _line(self) -> Line:
        line: Line | None = getattr(self._threads, "line", None)
        if line is not None and not line.usable():
            self._discard(line)
            line = None
        if line is None:
            line = Line(self._path, self._silence_s)
            self._threads.line = line
            self._info = line.info
            with self._lock:
                self._lines.add(line)
        return line

    def _discard(self, line: Line) -> None:
        line.close()
        self._threads.line = None
        with self._lock:
            self._lines.discard(line)
