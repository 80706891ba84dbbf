"""One farm a folder; clients find it while it lives, and a killed one is forgotten at once."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.data_folder import DataFolder, FarmAddress
from cli.errors import AlreadyRunningError
from shared.errors import UsageError

HOLDER = """
import os, sys, time
from pathlib import Path
from cli.data_folder import DataFolder, FarmAddress
folder = DataFolder(Path(sys.argv[1]))
folder.prepare()
with folder.hold():
    address = FarmAddress(url="http://127.0.0.1:1", pid=os.getpid(), version="1", started_at=0)
    folder.publish(address)
    print("held", flush=True)
    sys.stdin.read()
"""
CLIENT = """
import sys
from pathlib import Path
from cli.data_folder import DataFolder
with DataFolder(Path(sys.argv[1])).using():
    print("in", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(program: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has done its part and waits for the end of its input."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.prepare()
    return folder


def test_a_second_farm_is_refused_with_pid_and_url_of_the_first(folder: DataFolder) -> None:
    with another(HOLDER, folder.path) as holder:
        with pytest.raises(AlreadyRunningError) as caught, folder.hold():
            pass
        assert f"pid {holder.pid}" in str(caught.value)
        assert "http://127.0.0.1:1" in str(caught.value)
        address = folder.running()
        assert address is not None
        assert address.pid == holder.pid


def test_a_killed_farm_leaves_an_address_that_is_known_as_stale(folder: DataFolder) -> None:
    with another(HOLDER, folder.path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert (folder.path / "farm.json").exists()
        assert folder.running() is None
        assert not folder.is_held()
        with folder.hold():
            assert not (folder.path / "farm.json").exists()


def test_an_address_goes_with_the_farm_that_published_it(folder: DataFolder) -> None:
    with another(HOLDER, folder.path) as holder:
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait()
    assert not (folder.path / "farm.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"url": 1}', b"\xff\xfe"])
def test_a_damaged_address_is_no_address(folder: DataFolder, content: bytes) -> None:
    with folder.hold():
        (folder.path / "farm.json").write_bytes(content)
        assert folder.running() is None


def test_clients_that_look_do_not_keep_a_farm_from_starting(folder: DataFolder) -> None:
    looking = "import sys\nfrom pathlib import Path\nfrom cli.data_folder import DataFolder\n"
    looking += "print('looks', flush=True)\nwhile True: DataFolder(Path(sys.argv[1])).is_held()\n"
    with another(looking, folder.path):
        for _ in range(20):
            with folder.hold():
                pass


def test_nothing_in_the_folder_is_for_other_users(folder: DataFolder) -> None:
    with folder.hold(), folder.using():
        folder.publish(FarmAddress(url="http://x", pid=os.getpid(), version="1", started_at=0))
        for path in (folder.path, *folder.path.iterdir()):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_farm_for_its_clients_may_leave_only_when_all_have_left(folder: DataFolder) -> None:
    with folder.door() as may_leave:
        with another(CLIENT, folder.path) as first, another(CLIENT, folder.path) as second:
            assert not may_leave()
            first.kill()
            first.wait()
            assert not may_leave()
            second.send_signal(signal.SIGKILL)
            second.wait()
            assert within(2, may_leave)
        assert may_leave()


def test_a_leaving_farm_keeps_new_clients_out_until_it_is_gone(folder: DataFolder) -> None:
    with folder.door() as may_leave:
        assert may_leave()
        late = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            late.wait(1.0)
    with late:
        assert late.wait(5) == 0


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name another with --data"):
        DataFolder(tmp_path / "file" / "data").prepare()
