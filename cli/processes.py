"""The table of a farm's own processes: what is started, in which order it is stopped.

The servers beneath them (Valkey, SeaweedFS) are in `cli.servers`.
"""

import sys
from dataclasses import dataclass
from enum import IntEnum

from shared.starting import command


class Stage(IntEnum):
    """Order of stopping: first what takes work in, then what does it, last what stores it.

    A view holds nothing, so it is not asked but ended.
    """

    VIEW = 0
    FRONT = 1
    WORK = 2
    STORE = 3


@dataclass(frozen=True, slots=True)
class Process:
    """One process: its name (also of its log), its command line and its stage."""

    name: str
    argv: tuple[str, ...]
    stage: Stage


def farm_processes(
    *, nodes: int, flower_port: int | None, python: str = sys.executable
) -> tuple[Process, ...]:
    """List the processes in starting order: nodes first, since engines take longest to load.

    `flower_port` None leaves Flower out: a farm that nobody watches does without.
    """

    def module(name: str, *argv: str, stage: Stage, called: str) -> Process:
        return Process(called, tuple(command(name, *argv, python=python)), stage)

    table = [
        module("worker.node", "--index", str(index), stage=Stage.WORK, called=f"node-{index}")
        for index in range(nodes)
    ]
    table += [
        module("api", stage=Stage.FRONT, called="api"),
        module("worker.cpu", stage=Stage.WORK, called="cpu"),
        module("worker.scheduler", stage=Stage.FRONT, called="scheduler"),
        module("worker.deliver", stage=Stage.WORK, called="deliver"),
    ]
    if flower_port is not None:
        flower = ("-A", "worker.app:app", "flower", "--address=127.0.0.1")
        options = (f"--port={flower_port}", "--max_tasks=10000")
        table.append(module("celery", *flower, *options, stage=Stage.VIEW, called="flower"))
    return tuple(table)
