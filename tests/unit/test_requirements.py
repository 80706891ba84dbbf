"""The locks agree with the project file, and are what `scripts/setup` installs from."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = (ROOT / "requirements" / "constraints.txt", ROOT / "requirements" / "torch.txt")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def pins(lock: Path) -> dict[str, str]:
    lines = [line for line in lock.read_text().splitlines() if line and line[0] != "#"]
    found = dict(line.split("==") for line in lines)
    return {re.sub("[-_.]+", "-", name.lower()): version for name, version in found.items()}


def test_each_package_is_pinned_in_one_lock() -> None:
    main, torch = map(pins, LOCKS)
    assert "torch" in torch
    assert main.keys() & torch.keys() == set()


def test_the_torch_of_the_extra_is_the_torch_of_the_lock_and_comes_with_a_worker() -> None:
    assert set(EXTRAS["gpu"]) == {"voxfarm[worker]", f"torch=={pins(LOCKS[1])['torch']}"}


@pytest.mark.parametrize("extra", ["gpu", "embedded"])
def test_setup_hands_every_lock_to_pip(tmp_path: Path, extra: str) -> None:
    """given a virtual environment whose pip only notes what it is told / then both locks are."""
    for name in ("scripts/setup", "pyproject.toml", *(str(p.relative_to(ROOT)) for p in LOCKS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    noted = tmp_path / "noted"
    python.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "-m pip" ] || exec {sys.executable} "$@"\necho "$@" >> {noted}\n'
    )
    python.chmod(0o755)
    setup = ["sh", str(tmp_path / "scripts" / "setup"), extra]
    subprocess.run(setup, check=True, capture_output=True)
    [install] = [line for line in noted.read_text().splitlines() if " install " in line]
    for lock in LOCKS:
        assert f"-c {lock.relative_to(ROOT)}" in install
    assert f"-e .[{extra}]" in install

    noted.unlink()
    subprocess.run(setup, check=True, capture_output=True)
    assert not noted.exists()  # nothing has changed
    with (tmp_path / "requirements" / "torch.txt").open("a") as lock:
        lock.write("# another pin\n")
    subprocess.run(setup, check=True, capture_output=True)
    assert " install " in noted.read_text()
