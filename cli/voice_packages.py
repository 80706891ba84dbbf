"""Gets published packages by their index's own program, with that program's configuration.

Knows packages and checksums; neither engines nor what is inside a package. No index is named here:
`pip` and `npm` ask the one that this machine is set up with. Without npm, the registry is the one
in NPM_CONFIG_REGISTRY.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from cli.http import http_client
from shared.errors import SetupError
from worker.engines.files import Package

_POLL_S = 0.1
_CHUNK_BYTES = 256 * 1024
_REGISTRY_VARIABLES = ("NPM_CONFIG_REGISTRY", "npm_config_registry")


def find_package(package: Package, folder: Path) -> Path | None:
    """The package in a folder, if it lies there with the right checksum."""
    path = folder / package.file_name
    return path if path.is_file() and file_sha256(path) == package.sha256 else None


def fetch_package(package: Package, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Fetch a package into `folder`, where it appears once its checksum is right.

    `on_bytes` hears about how many bytes of it are here. SetupError: it could not be had.
    """
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder) as scratch:
        if package.kind == "pip":
            _by_pip(package, Path(scratch), on_bytes)
        else:
            _by_npm(package, Path(scratch), on_bytes)
        arrived = Path(scratch) / package.file_name
        if not arrived.is_file():
            raise SetupError(f"{package.name} came without {package.file_name}. {_hint(package)}")
        if file_sha256(arrived) != package.sha256:
            raise SetupError(
                f"{package.file_name} arrived with a wrong checksum: the index holds something "
                f"else under that name. {_hint(package)}"
            )
        return arrived.replace(folder / package.file_name)


def file_sha256(path: Path) -> str:
    """64 hexadecimal digits of a file; OSError when it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _by_pip(package: Package, folder: Path, on_bytes: Callable[[int], None]) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    options = ("--no-deps", "--no-input", "--only-binary=:all:", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "download", "-q", "--progress-bar=off", *options]
    _run([*command, "-r", str(wanted), "-d", str(folder)], package, folder, on_bytes)


def _by_npm(package: Package, folder: Path, on_bytes: Callable[[int], None]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        _from_registry(package, folder, on_bytes)
        return
    named = f"{package.name}@{package.version}"
    cache = f"--cache={folder / 'cache'}"  # so that what comes in can be seen coming
    options = ("--ignore-scripts", "--silent", "--no-update-notifier", cache)
    _run([npm, "pack", *options, named], package, folder, on_bytes)


def _run(
    command: list[str], package: Package, folder: Path, on_bytes: Callable[[int], None]
) -> None:
    """Run a program that writes into `folder` alone, and watch the folder grow."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    complaints = folder / "complaints"
    with complaints.open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            while process.poll() is None:
                on_bytes(min(_bytes_in(folder), package.size_bytes))
                time.sleep(_POLL_S)
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        said = complaints.read_text("utf-8", "replace").strip().splitlines()
        why = next((line for line in said if "error" in line.lower()), "".join(said[-1:]))
        program = Path(command[0]).name if package.kind == "npm" else "pip"
        raise SetupError(
            f"{program} could not fetch {package.name} {package.version} "
            f"(exit {process.returncode}: {why[:300]}). {_hint(package)}"
        )


def _from_registry(package: Package, folder: Path, on_bytes: Callable[[int], None]) -> None:
    registry = next(filter(None, map(os.environ.get, _REGISTRY_VARIABLES)), None)
    if registry is None:
        raise SetupError(
            f"{package.file_name} needs npm, which is not installed: install it, or name a "
            f"registry in {_REGISTRY_VARIABLES[0]}. {_hint(package)}"
        )
    url = f"{registry.rstrip('/')}/{package.name}/-/{package.file_name}"
    have = 0
    try:
        with (
            http_client(url) as http,
            http.stream("GET", url, follow_redirects=True) as response,
            (folder / package.file_name).open("wb") as sink,
        ):
            response.raise_for_status()
            for chunk in response.iter_bytes(_CHUNK_BYTES):
                have += sink.write(chunk)
                if have > package.size_bytes:
                    raise SetupError(f"{package.file_name} is longer than it should be")
                on_bytes(have)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SetupError(
            f"{package.file_name} could not be fetched: {why}. {_hint(package)}"
        ) from None


def _bytes_in(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(where) / name).stat().st_size
            except OSError:  # renamed or removed meanwhile
                continue
    return total


def _hint(package: Package) -> str:
    return (
        f"Without a connection: bring {package.file_name} from elsewhere and use --from FOLDER; "
        "what is here already is kept."
    )
