"""A node: its engine hosts, its two consumers, and the one process that keeps them alive.

Rush has a consumer of its own, so that a saturated bulk queue never stands in its way. The node
process holds neither an engine nor a queue connection, so it stays small and outlives both.
"""

import argparse
import logging
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from shared.errors import HostLostError, SetupError, TransientError
from shared.leaving import leave_quickly
from shared.ledger import nodes
from shared.ledger.database import Database
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.scheduling.depth import threads
from shared.settings import Settings
from shared.starting import command
from shared.tiers import Tier
from worker.host.link import HostLink
from worker.host.pace import HangWatch
from worker.host.serve import EXIT_OK
from worker.host.spawn import spawn_host
from worker.host.wear import WearLimits

log = logging.getLogger(__name__)

CONSUMERS: tuple[tuple[Tier, ...], ...] = ((Tier.RUSH,), (Tier.STANDARD, Tier.BULK))
HEARTBEAT_S = 3.0
READY_TIMEOUT_S = 300.0  # loading a large model takes minutes
DRAIN_S = 60.0
HOST_GRACE_S = 5.0
CRASH_WINDOW_S = 60.0
FREE_RESTARTS = 3  # within the window; after that each restart waits longer
MAX_SOCKET_FOLDER_BYTES = 90  # the system allows 107 for a socket's whole path


class HostProcess:
    """One engine host of this node: started, watched, and started again when it dies."""

    def __init__(self, engine: str, socket_path: Path, settings: Settings) -> None:
        self.engine = engine
        self.socket_path = socket_path
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._starts: list[float] = []
        self._heard_at = 0.0
        self._hang_watch = HangWatch(settings.host_silence_s)
        self.link = HostLink(socket_path, silence_s=settings.host_silence_s)

    def start(self) -> None:
        """Start the host; its socket appears when the engine is warm."""
        self._starts = [*self._starts[-9:], time.monotonic()]
        self._process = spawn_host(
            self.engine,
            self.socket_path,
            options=self._settings.engine_options.get(self.engine),
            tiers=self._settings.tiers,
            recycle=WearLimits(
                max_batches=self._settings.host_max_batches,
                max_growth_mb=self._settings.host_max_growth_mb,
            ),
        )

    def wait_ready(self, stop: threading.Event) -> None:
        """Return once the host says hello. Raises HostLostError when it never will."""
        self.link.wait_ready(READY_TIMEOUT_S, alive=lambda: self._alive() and not stop.is_set())
        self._heard_at = time.monotonic()

    def revive(self) -> None:
        """Start the host again if it has ended: at once, after crashes then ever more slowly."""
        if self._process is None or self._alive():
            return
        if self._process.returncode == EXIT_OK:
            log.info("the %s engine host made room for a new one", self.engine)
            self._starts.pop()  # that was no crash
            self.start()
            return
        now = time.monotonic()
        recent = sum(now - at < CRASH_WINDOW_S for at in self._starts)
        pause_s = 0.0 if recent <= FREE_RESTARTS else min(2.0 ** (recent - FREE_RESTARTS), 30.0)
        if now - self._starts[-1] < pause_s:
            return
        code = self._process.returncode
        log.warning("the %s engine host died (%s): starting it again", self.engine, code)
        self.start()

    def kill_if_hung(self) -> None:
        """Kill a host that has been in one step, or has said nothing, for too long."""
        try:
            vitals = self.link.ping()
            self._heard_at = time.monotonic()
            stuck = self._hang_watch.hangs(vitals, self._heard_at)
        except TransientError:
            loading = not self.socket_path.exists()
            limit_s = READY_TIMEOUT_S if loading else self._settings.host_silence_s
            stuck = time.monotonic() - max(self._heard_at, self._starts[-1]) > limit_s
        if self._process is not None and self._alive() and stuck:
            log.warning("the %s engine host is stuck: killing it", self.engine)
            self._process.kill()

    def ask_to_stop(self) -> None:
        """Have the host finish what is on its device and turn away what waits for it."""
        if self._process is not None and self._alive():
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End the host in order, or by force after a while."""
        self.link.close()
        if self._process is not None:
            _end(self._process, grace_s=HOST_GRACE_S)

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


class Node:
    """The node process: hosts first, then consumers; consumers stop first."""

    def __init__(self, settings: Settings, index: int, folder: Path) -> None:
        self._settings = settings
        self.id = f"{platform.node() or 'localhost'}-{os.getpid()}-{index}"
        self._name = f"node{index}"
        self._hosts = [
            HostProcess(engine, folder / f"{i}.sock", settings)
            for i, engine in enumerate(settings.engines)
        ]
        self._consumers: dict[tuple[Tier, ...], subprocess.Popen[bytes]] = {}
        self._database = Database(settings.sqlalchemy_url, pool_size=1)
        self._stop = threading.Event()

    def ask_to_stop(self, *_signal: object) -> None:
        """Begin an orderly end: running sentences are finished, the rest goes back."""
        self._stop.set()

    def run(self) -> None:
        """Serve until asked to stop."""
        try:
            for host in self._hosts:
                host.start()
            for host in self._hosts:
                host.wait_ready(self._stop)
            self._publish()
            for tiers in CONSUMERS:
                self._start_consumer(tiers)
            for host in self._hosts:  # a thread each: one that does not answer holds up no other
                threading.Thread(target=self._watch_for_hangs, args=(host,), daemon=True).start()
            self._keep_alive()
        except HostLostError as error:
            if not self._stop.is_set():
                raise SetupError(f"the node cannot start: {error}") from error
        finally:
            self._end_all()

    def _keep_alive(self) -> None:
        next_beat = time.monotonic() + HEARTBEAT_S
        while not self._stop.wait(0.1):
            for host in self._hosts:
                host.revive()
            for tiers, process in list(self._consumers.items()):
                if process.poll() is not None:
                    log.warning("consumer %s died (%s)", "+".join(tiers), process.returncode)
                    self._start_consumer(tiers)
            if time.monotonic() >= next_beat:
                self._publish()
                next_beat = time.monotonic() + HEARTBEAT_S

    def _publish(self) -> None:
        """Tell the ledger which engines are ready here; a busy ledger is told next time."""
        for host in self._hosts:
            try:
                info = host.link.info()
                self._database.transact(
                    lambda conn, info=info: nodes.publish(conn, self.id, info),  # type: ignore[misc]
                    patience_s=5,
                )
            except TransientError as error:
                log.warning("cannot publish %s: %s", host.engine, error)

    def _start_consumer(self, tiers: tuple[Tier, ...]) -> None:
        infos = [host.link.info() for host in self._hosts]
        at_once = threads(
            sum(info.slots for info in infos),
            rush=tiers == (Tier.RUSH,),
            pads=any(info.pads for info in infos),
            settling=self._settings.commit_most,
        )
        arguments = ["--node", self._name, "--parent", str(os.getpid())]
        for tier in tiers:
            arguments += ["--tier", tier.value]
        arguments += ["--concurrency", str(at_once)]
        for host in self._hosts:
            arguments += ["--host", f"{host.engine}={host.socket_path}"]
        self._consumers[tiers] = subprocess.Popen(command("worker.consumer", *arguments))

    def _watch_for_hangs(self, host: HostProcess) -> None:
        while not self._stop.wait(1.0):
            host.kill_if_hung()

    def _end_all(self) -> None:
        for process in self._consumers.values():
            process.send_signal(signal.SIGTERM)
        # At once as well: else the consumers would wait for all that they have asked it for, which
        # is several batches, instead of giving back what it has not begun.
        for host in self._hosts:
            host.ask_to_stop()
        for process in self._consumers.values():
            _end(process, grace_s=DRAIN_S)
        for host in self._hosts:
            host.stop()
        try:
            self._database.transact(lambda conn: nodes.withdraw(conn, self.id), patience_s=1)
        except TransientError:
            log.warning("the ledger is away: the node's heartbeat will run out instead")
        self._database.close()


def _end(process: subprocess.Popen[bytes], *, grace_s: float) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(argv: Sequence[str] | None = None) -> None:
    """Run a node as a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m worker.node", description=__doc__)
    parser.add_argument("--index", type=int, default=0, help="which node of this machine it is")
    args = parser.parse_args(argv)
    die_with_parent()
    leave_quickly()
    configure_logging(f"node{args.index}")
    settings = Settings()
    with _socket_folder(settings, args.index) as folder:
        node = Node(settings, args.index, folder)
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, node.ask_to_stop)
        node.run()


@contextmanager
def _socket_folder(settings: Settings, index: int) -> Iterator[Path]:
    """A private folder for the hosts' sockets, inside the data folder where its path is short.

    What a killed node left there is cleared by its successor.
    """
    folder = settings.data_dir / "run" / f"node{index}"
    if len(os.fsencode(folder)) > MAX_SOCKET_FOLDER_BYTES:
        with tempfile.TemporaryDirectory(prefix="voxfarm-") as short:
            yield Path(short)
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
