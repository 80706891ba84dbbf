"""A deliverable arrives whole or not at all, over whatever the network does."""

import fcntl
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.download import download
from cli.errors import TransferError
from cli.replies import Deliverable
from tests.unit.cli.farm_double import Answer, FarmDouble, Handler, breaks, farm_double

AUDIO = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture
def farm() -> Iterator[FarmDouble]:
    with farm_double() as farm:
        yield farm


def a_file(farm: FarmDouble, content: bytes = AUDIO, path: str = "/a") -> Deliverable:
    return Deliverable(
        name="a.wav",
        kind="audio",
        content_type="audio/wav",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        url=farm.url + path,
    )


def gives(content: bytes = AUDIO, *, cut_after: int | None = None, ranges: bool = True) -> Answer:
    """Serve like an object store, ranges included; perhaps break off in the middle."""

    def answer(request: Handler) -> None:
        asked = request.headers.get("Range", "")
        first = int(asked.removeprefix("bytes=").rstrip("-")) if asked and ranges else 0
        if first and first >= len(content):
            request.send_whole(416, b"")
            return
        rest = content[first:]
        request.send_response(206 if first else 200)
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        request.wfile.write(rest if cut_after is None else rest[:cut_after])
        if cut_after is not None:
            request.cut()

    return answer


def fetch(file: Deliverable, target: Path, fresh: Deliverable | None = None) -> list[int]:
    heard = list[int]()
    download(
        file,
        target,
        fresh=lambda: fresh or file,
        on_bytes=heard.append,
        patience_s=2.0,
        sleep=lambda _: None,
    )
    return heard


def test_a_file_comes_whole_and_leaves_no_part_behind(farm: FarmDouble, tmp_path: Path) -> None:
    farm.on("GET", "/a", gives())
    heard = fetch(a_file(farm), tmp_path / "a.wav")
    assert (tmp_path / "a.wav").read_bytes() == AUDIO
    assert heard[-1] == len(AUDIO)
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


def test_an_empty_file_needs_no_transfer(farm: FarmDouble, tmp_path: Path) -> None:
    fetch(a_file(farm, b""), tmp_path / "a.wav")
    assert (tmp_path / "a.wav").read_bytes() == b""
    assert farm.seen == []


def test_a_broken_transfer_goes_on_where_it_stopped(farm: FarmDouble, tmp_path: Path) -> None:
    farm.on("GET", "/a", gives(cut_after=300_000), breaks, gives(cut_after=300_000), gives())
    fetch(a_file(farm), tmp_path / "a.wav")
    assert (tmp_path / "a.wav").read_bytes() == AUDIO
    starts = [int(r.headers.get("Range", "bytes=0-")[6:-1]) for r in farm.seen]
    assert starts == sorted(starts)
    assert starts[-1] > 0


def test_a_server_without_ranges_is_read_from_the_start(farm: FarmDouble, tmp_path: Path) -> None:
    farm.on("GET", "/a", gives(cut_after=300_000), gives(ranges=False))
    fetch(a_file(farm), tmp_path / "a.wav")
    assert (tmp_path / "a.wav").read_bytes() == AUDIO


def test_what_an_earlier_program_left_is_used(farm: FarmDouble, tmp_path: Path) -> None:
    (tmp_path / "a.wav.part").write_bytes(AUDIO[:500_000])
    farm.on("GET", "/a", gives())
    fetch(a_file(farm), tmp_path / "a.wav")
    assert (tmp_path / "a.wav").read_bytes() == AUDIO
    assert farm.seen[0].headers["Range"] == "bytes=500000-"


@pytest.mark.parametrize("left", [b"\xff" * 500_000, b"\xff" * len(AUDIO), AUDIO + b"more"])
def test_a_part_of_something_else_is_thrown_away(
    farm: FarmDouble, tmp_path: Path, left: bytes
) -> None:
    (tmp_path / "a.wav.part").write_bytes(left)
    farm.on("GET", "/a", gives())
    fetch(a_file(farm), tmp_path / "a.wav")
    assert (tmp_path / "a.wav").read_bytes() == AUDIO


def test_an_expired_link_is_asked_for_anew(farm: FarmDouble, tmp_path: Path) -> None:
    farm.on("GET", "/old", lambda request: request.send_whole(403, b"expired"))
    farm.on("GET", "/new", gives())
    fetch(a_file(farm, path="/old"), tmp_path / "a.wav", fresh=a_file(farm, path="/new"))
    assert (tmp_path / "a.wav").read_bytes() == AUDIO


@pytest.mark.parametrize("wrong", [AUDIO[::-1], AUDIO + b"x"])
def test_wrong_bytes_never_take_the_name(farm: FarmDouble, tmp_path: Path, wrong: bytes) -> None:
    farm.on("GET", "/a", gives(wrong))
    with pytest.raises(TransferError, match=r"checksum|longer"):
        fetch(a_file(farm), tmp_path / "a.wav")
    assert not (tmp_path / "a.wav").exists()


def test_a_file_that_is_gone_is_said_so(farm: FarmDouble, tmp_path: Path) -> None:
    farm.on("GET", "/a", lambda request: request.send_whole(404, b""))
    with pytest.raises(TransferError, match="404"):
        fetch(a_file(farm), tmp_path / "a.wav")


def test_a_farm_that_stays_away_leaves_what_came_for_the_next_try(
    farm: FarmDouble, tmp_path: Path
) -> None:
    now_s = iter(range(10_000))
    farm.on("GET", "/a", gives(cut_after=300_000), breaks)
    with pytest.raises(TransferError, match="goes on from there"):
        download(
            a_file(farm),
            tmp_path / "a.wav",
            fresh=lambda: a_file(farm),
            patience_s=5.0,
            clock=lambda: float(next(now_s)),
            sleep=lambda _: None,
        )
    assert (tmp_path / "a.wav.part").stat().st_size > 0


def test_two_downloads_do_not_write_one_file(farm: FarmDouble, tmp_path: Path) -> None:
    farm.on("GET", "/a", gives())
    with (tmp_path / "a.wav.part").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TransferError, match="another download"):
            fetch(a_file(farm), tmp_path / "a.wav")
    assert farm.seen == []


def test_a_folder_that_is_not_there_is_one_clear_line(farm: FarmDouble, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="cannot be written"):
        fetch(a_file(farm), tmp_path / "no" / "a.wav")


FULL = """
import resource, signal, sys
from pathlib import Path
from cli.download import download
from cli.errors import TransferError
from cli.replies import Deliverable

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
file = Deliverable.model_validate_json(sys.argv[1])
try:
    download(file, Path(sys.argv[2]), fresh=lambda: file)
except TransferError as error:
    print(error)
"""


def test_a_disk_without_room_keeps_no_half_file(farm: FarmDouble, tmp_path: Path) -> None:
    """The limit on a file's size stands for the full disk: the kernel refuses the write."""
    farm.on("GET", "/a", gives())
    command = [sys.executable, "-c", FULL, a_file(farm).model_dump_json()]
    done = subprocess.run(
        [*command, str(tmp_path / "a.wav")], capture_output=True, text=True, check=True
    )
    assert "cannot be written: File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []
