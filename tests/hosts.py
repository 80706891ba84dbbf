"""Starts real engine hosts for tests: each a process of its own, in a short temporary folder."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.settings import TierSettings
from shared.tiers import Tier
from worker.engines.base import Utterance
from worker.host.link import HostLink
from worker.host.spawn import spawn_host
from worker.host.wear import WearLimits

START_S = 60.0


@dataclass(slots=True)
class RunningHost:
    """A host that is ready, and a link to it."""

    process: subprocess.Popen[bytes]
    path: Path
    link: HostLink


@contextmanager
def socket_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket, whatever the test's name."""
    with tempfile.TemporaryDirectory(prefix="vf") as folder:
        yield Path(folder)


@contextmanager
def running_host(
    engine: str = "tone",
    *,
    silence_s: float = 30.0,
    tiers: dict[Tier, TierSettings] | None = None,
    recycle: WearLimits | None = None,
    **options: Any,
) -> Iterator[RunningHost]:
    """A host of `engine`, ready; ended, whatever state it is in, when the block ends."""
    with socket_folder() as folder:
        path = folder / "host.sock"
        process = spawn_host(engine, path, options=options, tiers=tiers, recycle=recycle)
        link = HostLink(path, silence_s=silence_s)
        try:
            link.wait_ready(START_S, alive=lambda: process.poll() is None)
            yield RunningHost(process, path, link)
        finally:
            link.close()
            process.kill()
            process.wait()


def utterance(text: str = "Hello there.", **changes: Any) -> Utterance:
    """Something every testing engine says."""
    fields: dict[str, Any] = {
        "id": "u",
        "text": text,
        "voice": "a",
        "language": "en",
        "speed": 1.0,
        "seed": 1,
    }
    return Utterance(**(fields | changes))


def ignore() -> None:
    """Progress that nobody watches."""
