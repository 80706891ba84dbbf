"""A whole farm on this machine: servers, schema and processes, from start to orderly end.

Knows no command line and prints nothing itself.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from cli.children import ProcessChild, ServerChild
from cli.client import FarmClient
from cli.data_folder import DataFolder, FarmAddress
from cli.errors import FarmStoppedError
from cli.farm_settings import children_environment, core_count
from cli.installed import require_engines
from cli.local_key import make_local_key
from cli.ports import LOOPBACK, is_wildcard
from cli.processes import Stage, farm_processes
from cli.servers.seaweed import SeaweedServer
from cli.servers.valkey import ValkeyServer
from cli.store_probe import store_has_room, store_refuses
from cli.store_watch import StoreWatch
from cli.supervisor import Supervisor
from shared.errors import VoxfarmError
from shared.ledger.database import Database
from shared.ledger.migrate import migrate
from shared.settings import Settings

READY_S = 170.0
_LOOK_S = 0.1


@dataclass(slots=True)
class LocalFarm:
    """Hold the data folder before `start`; call `stop` whatever happened.

    `say` gets lines for people; `should_stop` is asked between all steps of starting.
    """

    settings: Settings
    folder: DataFolder
    flower_port: int | None
    embedded: bool
    say: Callable[[str], None]
    should_stop: Callable[[], bool]
    supervisor: Supervisor = field(init=False)
    _valkey: ValkeyServer = field(init=False)
    _seaweed: SeaweedServer = field(init=False)
    _store: ServerChild = field(init=False)
    _store_watch: StoreWatch = field(init=False)
    _at: tuple[str, str] = field(init=False, default=("", ""))
    _placed: Mapping[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(say=self.say)
        self._valkey = ValkeyServer(self.folder.path / "valkey")
        self._seaweed = SeaweedServer(self.folder.path / "seaweedfs")
        self._store_watch = StoreWatch(
            refuses=lambda: store_refuses(self.settings, self._seaweed),
            room=lambda: store_has_room(self._seaweed.folder / "data"),
            clock=time.monotonic,
        )

    @property
    def url(self) -> str:
        """Where clients on this machine reach the API."""
        host = self.settings.api_host
        if is_wildcard(host):
            host = LOOPBACK
        return f"http://{f'[{host}]' if ':' in host else host}:{self.settings.api_port}"

    def address(self) -> FarmAddress:
        """Return what clients are told, once the farm is started."""
        flower = None if self.flower_port is None else f"http://{LOOPBACK}:{self.flower_port}"
        return FarmAddress(
            url=self.url,
            pid=os.getpid(),
            version=version("voxfarm"),
            started_at=time.time(),
            embedded=self.embedded,
            flower_url=flower,
            s3_url=f"http://{self._seaweed.endpoint}",
        )

    def start(self) -> bool:
        """Start everything and wait until jobs can be taken. False: told to stop before that.

        UsageError, SetupError, FarmStoppedError: it cannot be; the message says why.
        """
        require_engines(self.settings.engines)
        valkey = ServerChild("valkey", self._valkey, log=self._server_log("valkey"))
        self._store = ServerChild("seaweedfs", self._seaweed, log=self._server_log("seaweedfs"))
        for server in (valkey, self._store):
            self.supervisor.add(server)
            if self.should_stop():
                return False
        self._store_watch.start()
        self._place()
        _migrate(self._placed["VOXFARM_DATABASE_URL"])
        nodes = self.settings.nodes or core_count()
        for process in farm_processes(nodes=nodes, flower_port=self.flower_port):
            if self.should_stop():
                return False
            child = ProcessChild(process, logs=self.folder.logs, environment=lambda: self._placed)
            self.supervisor.add(child)
        return self._wait_ready()

    def tick(self) -> None:
        """Keep everything alive; follow a server that had to move to another port."""
        if self._store_watch.is_stuck():
            self.say("seaweedfs refuses every write although its disk has room; ending it")
            self._store.kill()
        self.supervisor.tick()
        if self._addresses() != self._at:
            self._place()
            self.say("a server has moved to another port; starting the farm's processes again")
            self.supervisor.restart_all_but(Stage.STORE)

    def stop(self) -> None:
        """End everything in order, within 5 s."""
        self._store_watch.stop()
        self.folder.withdraw()
        killed = self.supervisor.stop()
        for server in (self._valkey, self._seaweed):
            server.stop(grace_s=0)  # it has ended: this removes what it leaves lying about
        if killed:
            self.say(f"had to be killed: {', '.join(killed)}")

    def _server_log(self, name: str) -> Path:
        """Show a server's log, which lies in its own folder, among those of all others."""
        shown = self.folder.logs / f"{name}.log"
        shown.unlink(missing_ok=True)
        shown.symlink_to(Path("..", name, f"{name}.log"))
        return shown

    def _addresses(self) -> tuple[str, str]:
        return self._valkey.url, self._seaweed.endpoint

    def _place(self) -> None:
        """Note where the servers are, for every process that starts from now on."""
        self._at = self._addresses()
        self._placed = children_environment(
            self.settings,
            redis_url=self._valkey.url,
            s3_endpoint=self._seaweed.endpoint,
            s3_access_key=self._seaweed.access_key,
            s3_secret_key=self._seaweed.secret_key,
            local_key=make_local_key(self.folder.path),
        )

    def _wait_ready(self) -> bool:
        deadline_s = time.monotonic() + READY_S
        key = make_local_key(self.folder.path)
        with FarmClient(self.url, key=key, patience_s=0.0) as client:
            while not (client.is_ready() and self._engines_are_there(client)):
                if self.should_stop():
                    return False
                if time.monotonic() > deadline_s:
                    raise FarmStoppedError(
                        f"the farm was not ready after {READY_S:.0f} s; see {self.folder.logs}"
                    )
                self.tick()
                time.sleep(_LOOK_S)
        return True

    def _engines_are_there(self, client: FarmClient) -> bool:
        with suppress(VoxfarmError):
            return {voice.engine for voice in client.voices()} >= set(self.settings.engines)
        return False


def _migrate(database_url: str) -> None:
    database = Database(database_url)
    try:
        migrate(database)
    finally:
        database.close()
