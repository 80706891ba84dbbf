"""Faults of processes: killed, frozen beyond their leases, told to leave."""

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psutil

from tests.chaos.storm.ground import Ground

RESTART_S = 90.0


class Kill:
    """SIGKILL to one process of a kind."""

    def __init__(self, ground: Ground, kind: str, seed: int) -> None:
        self._ground, self._kind, self._seed = ground, kind, seed

    def begin(self) -> None:
        victim = random.Random(self._seed).choice(self._ground.victims(self._kind))
        with suppress(psutil.NoSuchProcess):
            victim.kill()

    def end(self) -> None:
        """It is over at once."""


class KillServer:
    """SIGKILL to a server of the farm; over when the next one answers."""

    def __init__(self, ground: Ground, kind: str, answers: Callable[[], bool]) -> None:
        self._ground, self._kind, self._answers = ground, kind, answers

    def begin(self) -> None:
        [victim] = self._ground.victims(self._kind)
        victim.kill()
        victim.wait()

    def end(self) -> None:
        deadline_s = time.monotonic() + RESTART_S
        while not self._answers():
            assert time.monotonic() < deadline_s, f"{self._kind} does not come back"
            time.sleep(0.1)


class KillSupervisor:
    """SIGKILL to `voxfarm up`: all its children die with it. Then an operator starts it again."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def begin(self) -> None:
        process = self._ground.farm.process
        assert process is not None
        children = self._ground.watched().process.children(recursive=True)
        process.kill()
        process.wait()
        _gone, alive = psutil.wait_procs(children, timeout=10)
        assert alive == [], "children outlived their supervisor"

    def end(self) -> None:
        self._ground.keep_up()


class Terminate:
    """SIGTERM, as a deploy sends it; whoever looks after the process starts it again."""

    def __init__(self, ground: Ground, kind: str, seed: int) -> None:
        self._ground, self._kind, self._seed = ground, kind, seed

    def begin(self) -> None:
        victims = self._ground.victims(self._kind)
        if self._kind == "cpu worker":
            victims = victims[:1]  # the parent; its pool is its own to end
        with suppress(psutil.NoSuchProcess):
            random.Random(self._seed).choice(victims).terminate()

    def end(self) -> None:
        """It is over at once."""


class Freeze:
    """SIGSTOP, and SIGCONT when its leases have long run out: then it is a zombie at work."""

    def __init__(self, ground: Ground, kind: str, seed: int) -> None:
        self._ground, self._kind, self._seed = ground, kind, seed
        self._frozen: Sequence[psutil.Process] = ()

    def begin(self) -> None:
        victims = self._ground.victims(self._kind)
        whole = self._kind == "cpu worker"  # parent and pool
        self._frozen = victims if whole else [random.Random(self._seed).choice(victims)]
        for victim in self._frozen:
            with suppress(psutil.NoSuchProcess):
                victim.suspend()

    def end(self) -> None:
        for victim in self._frozen:
            with suppress(psutil.NoSuchProcess):  # it may have been killed as hung
                victim.resume()


class StopServer:
    """SIGSTOP to a server: connections stay open, nobody answers."""

    def __init__(self, ground: Ground, kind: str) -> None:
        self._ground, self._kind = ground, kind
        self._frozen: Sequence[psutil.Process] = ()

    def begin(self) -> None:
        self._frozen = self._ground.victims(self._kind)
        for victim in self._frozen:
            victim.suspend()

    def end(self) -> None:
        for victim in self._frozen:
            with suppress(psutil.NoSuchProcess):
                os.kill(victim.pid, signal.SIGCONT)


class RefuseWebhooks:
    """Nobody listens where webhooks are to be sent."""

    def __init__(self, ground: Ground) -> None:
        self._letterbox = ground.letterbox

    def begin(self) -> None:
        self._letterbox.shut()

    def end(self) -> None:
        self._letterbox.open()
