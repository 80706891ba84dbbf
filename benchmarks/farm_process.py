"""A whole `voxfarm up` as a child process, watched: CPU seconds and peak memory by process kind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

READY_TIMEOUT_S = 120.0
# What tells a process's kind from its command line, first match wins.
KINDS = (
    ("valkey-server", "valkey"),
    ("weed", "seaweedfs"),
    ("worker.host", "engine host"),
    ("worker.consumer", "consumer"),
    ("worker.node", "node"),
    ("worker.cpu", "cpu worker"),
    ("worker.deliver", "deliver worker"),
    ("worker.scheduler", "scheduler"),
    ("flower", "flower"),
    ("starting api", "api"),
    (" up ", "supervisor"),
)


@dataclass
class Watched:
    """A running farm and what its processes have used."""

    process: psutil.Process
    data_dir: Path
    url: str
    peak_rss_mb: dict[str, float] = field(default_factory=dict)

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds (user and system) of the live processes, by kind."""
        used: dict[str, float] = defaultdict(float)
        for process in self._tree():
            try:
                times = process.cpu_times()
                used[kind_of(process)] += (
                    times.user + times.system + times.children_user + times.children_system
                    if kind_of(process) == "cpu worker" and not process.children()
                    else times.user + times.system
                )
            except psutil.Error:
                continue
        return dict(used)

    def sample_rss(self) -> None:
        """Note each kind's memory (sum over its processes), keeping the peak."""
        now: dict[str, float] = defaultdict(float)
        for process in self._tree():
            try:
                now[kind_of(process)] += process.memory_info().rss / 1e6
            except psutil.Error:
                continue
        for kind, rss_mb in now.items():
            self.peak_rss_mb[kind] = max(self.peak_rss_mb.get(kind, 0.0), rss_mb)

    def processes(self, kind: str) -> list[psutil.Process]:
        """The live processes of a kind."""
        return [p for p in self._tree() if kind_of(p) == kind]

    def _tree(self) -> list[psutil.Process]:
        try:
            return [self.process, *self.process.children(recursive=True)]
        except psutil.Error:
            return []


def kind_of(process: psutil.Process) -> str:
    """The kind of a farm process, from its command line."""
    try:
        line = " ".join(process.cmdline()) + " "
    except psutil.Error:
        return "gone"
    for mark, kind in KINDS:
        if mark in line:
            return kind
    return "other"


@contextmanager
def running_farm(
    *,
    engine: str,
    nodes: int,
    environment: Mapping[str, str] | None = None,
    data_dir: Path | None = None,
) -> Iterator[Watched]:
    """`voxfarm up`, ready and warm; stopped at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="voxfarm-bench-") as folder:
        data = data_dir or Path(folder)
        process = start_up(data, ["--engine", engine, "--nodes", str(nodes)], environment)
        try:
            url = wait_ready(process, data)
            watched = Watched(psutil.Process(process.pid), data, url)
            with _sampling(watched):
                yield watched
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start_up(
    data_dir: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `voxfarm up` on a data folder; its output goes to up.log there."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / "up.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "cli", "up", "--data", str(data_dir), "--port", "0", *arguments],
            env={**os.environ, "VOXFARM_ALLOW_TESTING_ENGINES": "true", **(environment or {})},
            stdout=log,
            stderr=log,
        )


def wait_ready(process: subprocess.Popen[bytes], data_dir: Path) -> str:
    """The API's URL, once it answers that everything is ready."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"voxfarm up ended: {(data_dir / 'up.log').read_text()[-2000:]}")
        try:
            url = str(json.loads((data_dir / "farm.json").read_text())["url"])
            if httpx.get(f"{url}/readyz", timeout=5).status_code == httpx.codes.OK:
                return url
        except (OSError, ValueError, KeyError, httpx.HTTPError):
            pass
        time.sleep(0.1)
    raise TimeoutError(f"the farm was not ready: {(data_dir / 'up.log').read_text()[-2000:]}")


@contextmanager
def _sampling(watched: Watched, period_s: float = 0.5) -> Iterator[None]:
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(period_s):
            watched.sample_rss()

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
