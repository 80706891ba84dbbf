"""`voxfarm up`: the whole farm in the foreground of one command."""

import os
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cli import options
from cli.data_folder import DataFolder, FarmAddress
from cli.exits import told
from cli.farm_settings import load_settings
from cli.ports import free_port, port_is_free
from shared.errors import UsageError
from shared.leaving import leave_quickly
from shared.settings import Settings
from shared.starting import importing

FLOWER_PORT = 5555
_LOOK_S = 0.2
_NOTICE_S = 0.5

Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65_535,
        help="Port of the API; 0 takes any free one. Default: VOXFARM_API_PORT or 8080.",
        show_default=False,
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option("--nodes", min=1, help="Engine nodes. Default: one per core.", show_default=False),
]
UntilUnused = Annotated[
    bool,
    typer.Option("--until-unused", hidden=True, help="Leave when no client uses the folder."),
]


def up_command(
    *,
    data: options.Data = None,
    port: Port = None,
    nodes: Nodes = None,
    engine: options.Engines = None,
    until_unused: UntilUnused = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the whole farm: API, scheduler, workers, nodes, Flower, Valkey and an S3 store.

    All of it listens on loopback and keeps its state in one data folder. Ctrl-C stops it within
    5 seconds and loses nothing: what was under way goes on at the next start. A process that dies
    is started again and named. Exit code 4: the folder already has a farm.

    **Examples**

        voxfarm up
        voxfarm up --data ./farm --port 0 --nodes 1
    """
    with told(as_json=as_json):
        settings = load_settings(
            data_dir=data.absolute() if data else None,
            api_port=0 if until_unused else port,
            nodes=nodes,
            engines=tuple(engine) if engine else None,
            allow_testing_engines=True if engine else None,  # they were named by the operator
        )
        if settings.default_engine not in settings.engines:
            settings = settings.model_copy(update={"default_engine": settings.engines[0]})
        run_farm(settings, embedded=until_unused, as_json=as_json)


def run_farm(settings: Settings, *, embedded: bool, as_json: bool) -> None:
    """Run a farm in this process until a signal, or its last client's leaving, ends it."""
    with importing():
        from cli.local_farm import LocalFarm  # noqa: PLC0415 - no other command needs SQLAlchemy

    leave_quickly()
    began_s = time.monotonic()
    console = Console(stderr=True)
    stop = _Signals()
    folder = DataFolder(settings.data_dir.absolute())
    folder.prepare()
    with ExitStack() as stack:
        stack.enter_context(folder.hold())
        unused = stack.enter_context(folder.door()) if embedded else _never
        placed = settings.model_copy(
            update={"data_dir": folder.path, "api_port": _api_port(settings)}
        )
        os.chdir(folder.path)  # no folder of the user's is imported from, and none is kept busy
        farm = LocalFarm(
            settings=placed,
            folder=folder,
            flower_port=None if embedded else _flower_port(settings),
            embedded=embedded,
            say=lambda line: console.print(
                Text(f"{time.strftime('%H:%M:%S')} {line}"), soft_wrap=True
            ),
            should_stop=lambda: stop.noticed() or unused(),
        )
        try:
            if farm.start():
                folder.publish(farm.address())
                _announce(farm.address(), folder, time.monotonic() - began_s, as_json=as_json)
                while not farm.should_stop():
                    farm.tick()
                    time.sleep(_LOOK_S)
        except _StopNowError:
            pass
        finally:
            farm.stop()


class _StopNowError(Exception):
    """The loop was too deep in something, like a server's start, to notice a signal."""


@dataclass(slots=True)
class _Signals:
    """Remembers that a signal asked for the end, and interrupts a loop that does not look."""

    _asked: bool = False
    _noticed: bool = False

    def __post_init__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask)
        signal.signal(signal.SIGALRM, self._insist)

    def noticed(self) -> bool:
        """Tell whether the end was asked for."""
        self._noticed = self._asked
        return self._asked

    def _ask(self, *_: object) -> None:
        if not self._asked:
            self._asked = True
            signal.setitimer(signal.ITIMER_REAL, _NOTICE_S)

    def _insist(self, *_: object) -> None:
        if not self._noticed:
            self._noticed = True
            raise _StopNowError


def _never() -> bool:
    return False


def _api_port(settings: Settings) -> int:
    if settings.api_port == 0:
        return free_port()
    if not port_is_free(settings.api_host, settings.api_port):
        raise UsageError(
            f"port {settings.api_port} of {settings.api_host} is taken by another program; "
            "choose one with --port, or --port 0 for any free one",
            code="port-taken",
        )
    return settings.api_port


def _flower_port(settings: Settings) -> int:
    """Flower's usual port if it is free; who asks for any port for the API gets any for Flower."""
    return free_port(preferred=FLOWER_PORT if settings.api_port else None)


def _announce(address: FarmAddress, folder: DataFolder, took_s: float, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(address.model_dump_json() + "\n")
        sys.stdout.flush()
        return
    console = Console()
    console.print(Text(f"Voxfarm is up after {took_s:.1f} s", "bold green"))
    for name, value in (
        ("API", address.url),
        ("OpenAPI", f"{address.url}/openapi.json"),
        ("Flower", address.flower_url or "-"),
        ("S3", address.s3_url or "-"),
        ("data", str(folder.path)),
        ("logs", str(folder.logs)),
    ):
        console.print(Text(f"  {name:<8}{value}"), soft_wrap=True)
    console.print("Ctrl-C stops it; jobs under way go on at the next start.")
