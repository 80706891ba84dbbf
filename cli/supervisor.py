"""Keeps children alive, and ends them in order. Knows no farm, no network and no settings."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cli.child_logs import bound, last_lines, length_bytes
from cli.children import Child
from cli.errors import FarmStoppedError
from cli.processes import Stage
from cli.restarts import RestartPolicy
from shared.errors import VoxfarmError

_LOGS_EVERY_S = 5.0
_REAP_S = 0.02


@dataclass(frozen=True, slots=True)
class StopTimes:
    """Seconds after the order to stop; the rest is asked when the front had `front_s` to begin.

    Farms must be gone after 5 s, on a busy machine too, where killing and reaping take a while.
    The store alone takes over a second from its order to its end, so that much is left to it.
    """

    front_s: float = 0.2
    work_s: float = 3.0
    end_s: float = 4.5


@dataclass(slots=True)
class _Watched:
    child: Child
    deaths_s: list[float] = field(default_factory=list)
    start_at_s: float | None = None
    log_from_bytes: int = 0  # what lies before it was written for an earlier farm


class Supervisor:
    """Owns the children from `start` to `stop`. Not thread-safe: one thread does it all.

    `say` gets one line for each death and return, for people to read.
    """

    def __init__(
        self,
        *,
        say: Callable[[str], None],
        policy: RestartPolicy | None = None,
        stop_times: StopTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._watched = list[_Watched]()
        self._say = say
        self._policy = policy or RestartPolicy()
        self._stop_times = stop_times or StopTimes()
        self._clock = clock
        self._sleep = sleep
        self._logs_at_s = clock()

    def add(self, child: Child) -> None:
        """Start one more child and keep it alive from now on."""
        watched = _Watched(child, log_from_bytes=length_bytes(child.log))
        self._watched.append(watched)  # first: a start that fails half-way is ended too
        child.start()

    def tick(self) -> None:
        """Look after every child once. FarmStoppedError when one that matters will not live."""
        now_s = self._clock()
        for watched in self._watched:
            self._look_after(watched, now_s)
        if now_s - self._logs_at_s >= _LOGS_EVERY_S:
            self._logs_at_s = now_s
            for watched in self._watched:
                if bound(watched.child.log):
                    watched.log_from_bytes = 0

    def restart_all_but(self, kept: Stage) -> None:
        """End every child of another stage; `tick` starts them anew. Not counted as deaths."""
        for watched in self._watched:
            if watched.child.stage is not kept and watched.start_at_s is None:
                watched.child.kill()
                watched.start_at_s = self._clock()

    def _look_after(self, watched: _Watched, now_s: float) -> None:
        child = watched.child
        if watched.start_at_s is None:
            how = child.ended()
            if how is not None:
                self._mourn(watched, how, now_s)
        elif now_s >= watched.start_at_s and child.ended() is not None:
            watched.start_at_s = None
            try:
                child.start()
            except (OSError, VoxfarmError) as error:
                self._mourn(watched, str(error), now_s)
            else:
                self._say(f"{child.name} is started again (pid {child.pid})")

    def _mourn(self, watched: _Watched, how: str, now_s: float) -> None:
        """Note a death and set the next start. FarmStoppedError when there were too many."""
        child = watched.child
        watched.deaths_s = [*watched.deaths_s, now_s][-self._policy.limit :]
        delay_s = self._policy.delay_s(watched.deaths_s, now_s)
        if delay_s is None:
            end = (
                f"{child.name} died {self._policy.limit} times within "
                f"{self._policy.window_s:.0f} s, at last with {how}; its log {child.log} ends:\n"
                f"{last_lines(child.log, since_bytes=watched.log_from_bytes)}"
            )
            if child.stage is not Stage.VIEW:
                raise FarmStoppedError(end)
            watched.start_at_s = math.inf
            self._say(f"going on without {child.name}, which is only a view: {end}")
            return
        watched.start_at_s = now_s + delay_s
        self._say(f"{child.name} died ({how}); starting it again in {delay_s:.2g} s")

    def stop(self) -> list[str]:
        """End all children by stages. Returns the names of those that did not leave in time."""
        began_s = self._clock()
        times = self._stop_times
        self._kill(Stage.VIEW)
        self._ask(Stage.FRONT)
        self._wait(began_s + times.front_s, Stage.FRONT)
        self._ask(Stage.WORK)
        self._wait(began_s + times.work_s, Stage.FRONT, Stage.WORK)
        killed = self._kill(Stage.FRONT, Stage.WORK)
        self._ask(Stage.STORE)
        self._wait(began_s + times.end_s, Stage.STORE)
        killed += self._kill(Stage.STORE)
        return killed

    def _of(self, *stages: Stage) -> list[Child]:
        """List the children of these stages that live."""
        return [
            watched.child
            for watched in self._watched
            if watched.child.stage in stages
            and watched.child.pid is not None
            and watched.child.ended() is None
        ]

    def _ask(self, stage: Stage) -> None:
        for child in self._of(stage):
            child.ask_to_stop()

    def _wait(self, until_s: float, *stages: Stage) -> None:
        while self._of(*stages) and self._clock() < until_s:
            self._sleep(_REAP_S)

    def _kill(self, *stages: Stage) -> list[str]:
        left = self._of(*stages)
        for child in left:
            child.kill()
        while self._of(*stages):  # SIGKILL cannot be refused: this waits for the kernel alone
            self._sleep(_REAP_S)
        return [child.name for child in left]
