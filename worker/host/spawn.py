"""Starts an engine host as a child of this process. Knows nothing of what it will say."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from shared.settings import TierSettings
from shared.starting import command
from shared.tiers import Tier
from worker.host.address import check_path
from worker.host.wear import WearLimits


def spawn_host(
    engine: str,
    socket_path: Path,
    *,
    options: Mapping[str, object] | None = None,
    tiers: Mapping[Tier, TierSettings] | None = None,
    recycle: WearLimits | None = None,
) -> subprocess.Popen[bytes]:
    """Start a host; it is ready when `HostLink.wait_ready` returns, and dies with this process.

    Call it from a thread that lives as long as the process: on Linux the host dies with the thread
    that started it. The host's log goes to this process's stderr. It has a process group of its
    own, so that Ctrl-C in a terminal reaches it through its parent only. Worn by `recycle`'s
    measure it ends with status 0. Raises SetupError for a socket path that is too long.
    """
    check_path(socket_path)
    limits = {
        tier.value: {"max_batch": of.max_batch_of(engine), "max_wait_s": of.max_wait_s}
        for tier, of in (tiers or {}).items()
    }
    program = command(
        "worker.host",
        *("--engine", engine),
        *("--socket", os.fspath(socket_path)),
        *("--options", json.dumps(dict(options or {}))),
        *("--tiers", json.dumps(limits)),
        *("--recycle", json.dumps(asdict(recycle or WearLimits()))),
        *("--parent", str(os.getpid())),
    )
    return subprocess.Popen(program, stdin=subprocess.DEVNULL, process_group=0)
