"""The whole local farm through the command line: real servers, real processes, a real engine.

The engine is `tone`, whose sound needs no model and whose pace can be set, so that there is time
to kill things. Whatever a test starts is gone at its end, and that is part of what is tested.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import soundfile

from cli.client import FarmClient
from cli.data_folder import DataFolder
from cli.job_request import JobRequest
from shared.errors import UsageError

VOXFARM = [sys.executable, "-P", "-m", "cli"]
TEXT = "".join(f"This is sentence number {n} of the story. " for n in range(1, 25))
READY_S = 90.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


@dataclass
class Place:
    """A folder for one farm, and what runs in it."""

    folder: Path
    delay_s: float = 0.0
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> DataFolder:
        return DataFolder(self.folder / "data")

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if "VOXFARM" not in name}
        return {
            **ours,
            "VOXFARM_DATA_DIR": str(self.data.path),
            "VOXFARM_ENGINES": '["tone"]',
            "VOXFARM_ALLOW_TESTING_ENGINES": "true",
            "VOXFARM_NODES": "1",
            "VOXFARM_ENGINE_OPTIONS": json.dumps({"tone": {"delay_s": self.delay_s}}),
            **self.extra,
        }

    def voxfarm(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*VOXFARM, *argv],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    @contextmanager
    def started(self, *argv: str) -> Iterator["subprocess.Popen[str]"]:
        """Run a command beside the test; it is ended with the block if it has not ended itself."""
        process = subprocess.Popen(
            [*VOXFARM, *argv],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)

    def processes(self) -> list[psutil.Process]:
        """List every process of this farm: by its data folder, in its environment or as its cwd.

        (A server that writes its title overwrites its environment.)
        """
        mark = str(self.data.path)
        found = list[psutil.Process]()
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                    continue
                here = process.environ().get("VOXFARM_DATA_DIR") == mark
                if here or process.cwd().startswith(mark):
                    found.append(process)
        return found

    def process(self, *words: str) -> psutil.Process:
        """The one process whose command line holds all the words."""
        found = [p for p in self.processes() if set(words) <= set(words_of(p))]
        assert len(found) == 1, (words, [words_of(p) for p in self.processes()])
        return found[0]

    def server(self, name: str) -> psutil.Process:
        """Find one of the servers beneath the farm by its program's name."""
        found = [p for p in self.processes() if name in program_of(p)]
        assert len(found) == 1
        return found[0]

    def client(self) -> FarmClient:
        address = self.data.running()
        assert address is not None
        return FarmClient(address.url)

    def wait_for_rendering(self) -> None:
        """Return once a job of this farm has some of its sentences and not all of them."""
        wait_until(self.data.running, within_s=READY_S)
        with self.client() as client:
            wait_until(lambda: any(0 < job.progress.fraction < 1 for job in client.jobs()))


def words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has just ended
        return []


def program_of(process: psutil.Process) -> str:
    try:
        return Path(process.exe()).name
    except psutil.Error:  # it has just ended
        return ""


def wait_until(condition: Callable[[], object], within_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@contextmanager
def farm_up(place: Place) -> Iterator["subprocess.Popen[str]"]:
    with place.started("up", "--port", "0", "--json") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield process


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "story.txt").write_text(TEXT)
    place = Place(tmp_path)
    yield place
    wait_until(lambda: not place.processes(), within_s=15)


def seconds_of(path: Path) -> float:
    return soundfile.info(str(path)).duration


def test_a_running_farm_is_found_used_and_refuses_a_second(place: Place) -> None:
    """given a farm in the foreground / when its commands are used / then all find the same one."""
    with farm_up(place) as farm:
        second = place.voxfarm("up", "--port", "0")
        assert second.returncode == 4
        assert f"pid {farm.pid}" in second.stderr

        done = place.voxfarm("render", "story.txt", "--format", "flac", "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert seconds_of(place.folder / "story.flac") == pytest.approx(told["audio_s"], abs=0.001)

        job_id = told["job_id"]
        listed = place.voxfarm("jobs", "list", "--json")
        assert [job["id"] for job in json.loads(listed.stdout)] == [job_id]
        assert place.voxfarm("jobs", "wait", job_id).returncode == 0
        assert f"job         {job_id}" in place.voxfarm("jobs", "show", job_id).stdout
        fetched = place.voxfarm("jobs", "download", job_id, "--out", "again.flac")
        assert fetched.returncode == 0, fetched.stderr
        first, again = place.folder / "story.flac", place.folder / "again.flac"
        assert first.read_bytes() == again.read_bytes()

        voices = json.loads(place.voxfarm("voices", "--json").stdout)
        assert {voice["engine"] for voice in voices} == {"tone"}

        address = place.data.running()
        assert address is not None
        [audio, _] = told["files"]
        with place.client() as client:
            url = client.deliverables(job_id)[0].url
        assert audio["kind"] == "audio"
        assert address.s3_url is not None
        assert url.startswith(f"{address.s3_url}/")

        listening = {
            connection.laddr.ip
            for process in place.processes()
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert listening == {"127.0.0.1"}

        began_s = time.monotonic()
        farm.send_signal(signal.SIGINT)
        assert farm.wait(20) == 0
        assert time.monotonic() - began_s < 10  # 5 s, and slack for a machine that does much else
        assert place.data.running() is None
        assert not place.processes()


@pytest.mark.long  # it needs a machine of its own: what is late by the clock is rightly killed
@pytest.mark.parametrize("rendering", [False, True])
def test_an_orderly_stop_kills_nobody(tmp_path: Path, *, rendering: bool) -> None:
    """given a farm, idle or in the middle of a book / when it is stopped / then all leave in time.

    All of them together need a fifth of a second of CPU to leave, and have seconds; what is on the
    device then, eight sentences at most, takes 0.4 s.
    """
    (tmp_path / "story.txt").write_text(TEXT * 40)
    place = Place(tmp_path, delay_s=0.05)
    with ExitStack() as stack:
        farm = stack.enter_context(farm_up(place))
        if rendering:
            render = stack.enter_context(place.started("render", "story.txt", "--patience", "1"))
            place.wait_for_rendering()
        farm.send_signal(signal.SIGINT)
        _, told = farm.communicate(timeout=30)
        assert farm.returncode == 0
        assert "had to be killed" not in told, f"{told}load {os.getloadavg()}"
        if rendering:
            render.communicate(timeout=60)
            assert render.returncode == 3


def test_a_dead_process_is_named_and_replaced_and_the_render_goes_on(tmp_path: Path) -> None:
    """given a render under way / when processes are killed / then it ends as if nothing was."""
    (tmp_path / "story.txt").write_text(TEXT)
    place = Place(tmp_path, delay_s=0.2)
    with farm_up(place) as farm:
        quiet = place.voxfarm("render", "story.txt", "--out", "quiet.wav", "--format", "wav")
        assert quiet.returncode == 0, quiet.stderr
        with place.started(
            "render", "story.txt", "--no-reuse", "--out", "shaken.wav", "--format", "wav"
        ) as render:
            place.wait_for_rendering()
            for words in (("api",), ("worker.scheduler",), ("worker.node",)):
                place.process("-m", *words).kill()
            place.server("valkey").kill()
            _, said = render.communicate(timeout=120)
            assert render.returncode == 0, said
            shaken = (tmp_path / "shaken.wav").read_bytes()
            assert shaken == (tmp_path / "quiet.wav").read_bytes()
            farm.send_signal(signal.SIGTERM)
            _, told = farm.communicate(timeout=20)
            for name in ("api", "scheduler", "node-0", "valkey"):
                assert f"{name} died (killed by SIGKILL)" in told
                assert f"{name} is started again" in told


@pytest.mark.long  # `test_kills` kills a supervisor, too
def test_children_die_with_a_killed_supervisor_and_the_next_one_goes_on(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(TEXT)
    place = Place(tmp_path, delay_s=0.2)
    with (
        farm_up(place) as farm,
        place.started("render", "story.txt", "--format", "wav") as render,
    ):
        place.wait_for_rendering()
        farm.kill()
        farm.wait()
        wait_until(lambda: {p.pid for p in place.processes()} <= {render.pid}, within_s=10)
        with farm_up(place):
            _, said = render.communicate(timeout=120)
            assert render.returncode == 0, said
            assert seconds_of(tmp_path / "story.wav") > 0


def test_a_render_brings_its_own_farm_and_takes_it_away(place: Place) -> None:
    """given folders named like our packages / then they are not imported either."""
    for name in ("api", "worker", "shared", "cli"):
        (place.folder / name).mkdir()
        (place.folder / name / "__init__.py").write_text("raise SystemExit('imported a stranger')")
    done = place.voxfarm("render", "-", "--out", "x.wav", "--format", "wav", stdin=TEXT)
    assert done.returncode == 0, done.stderr
    assert seconds_of(place.folder / "x.wav") > 0
    assert place.data.running() is None
    assert not place.processes()


def test_two_renders_share_one_farm_that_stays_for_the_longer(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(TEXT)
    place = Place(tmp_path, delay_s=0.4)
    with place.started("render", "story.txt", "--out", "long.wav", "--format", "wav") as long:
        wait_until(place.data.running, within_s=READY_S)
        short = place.voxfarm(
            "render", "-", "--out", "short.wav", "--format", "wav", stdin="One. Two."
        )
        assert short.returncode == 0, short.stderr
        assert len([p for p in place.processes() if "--until-unused" in words_of(p)]) == 1
        _, said = long.communicate(timeout=120)
        assert long.returncode == 0, said
        wait_until(lambda: not place.processes(), within_s=15)


def test_a_killed_embedded_farm_is_replaced_and_the_job_goes_on(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(TEXT)
    place = Place(tmp_path, delay_s=0.1)
    with place.started("render", "story.txt", "--format", "wav") as render:
        place.wait_for_rendering()
        place.process("up", "--until-unused").kill()
        _, said = render.communicate(timeout=120)
        assert render.returncode == 0, said
        assert seconds_of(tmp_path / "story.wav") > 0
        wait_until(lambda: not place.processes(), within_s=15)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_or_killed_render_leaves_no_farm_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "story.txt").write_text(TEXT)
    place = Place(tmp_path, delay_s=0.5)
    with place.started("render", "story.txt", "--format", "wav") as render:
        place.wait_for_rendering()
        render.send_signal(number)
        _, said = render.communicate(timeout=30)
        if number == signal.SIGINT:
            assert render.returncode == 130
            assert "is cancelled" in said
        wait_until(lambda: not place.processes(), within_s=15)
        assert [path.name for path in tmp_path.iterdir() if path.suffix in {".wav", ".part"}] == []


def test_a_data_folder_with_keys_still_renders_and_a_key_names_its_tenant(place: Place) -> None:
    """given keys / when rendering without one / then this machine's own key lets it in."""
    made = json.loads(place.voxfarm("keys", "create", "--tenant", "news", "--json").stdout)
    with farm_up(place) as farm:
        own = place.voxfarm("render", "-", "--out", "x.wav", "--format", "wav", stdin="One.")
        assert own.returncode == 0, own.stderr
        assert (place.data.path / "local-key").stat().st_mode & 0o777 == 0o600
        address = place.data.running()
        assert address is not None
        with pytest.raises(UsageError) as caught, FarmClient(address.url) as stranger:
            stranger.voices()
        assert caught.value.code == "unauthorized"
        with FarmClient(address.url, key=made["key"]) as news:
            assert list(news.jobs()) == []
            news.submit(JobRequest(text="Two."))
            assert len(list(news.jobs())) == 1
        mine = json.loads(place.voxfarm("jobs", "list", "--json").stdout)
        theirs = json.loads(place.voxfarm("jobs", "list", "--json", "--key", made["key"]).stdout)
        assert (len(mine), len(theirs)) == (1, 1)
        assert mine[0]["id"] != theirs[0]["id"]
        assert place.voxfarm("keys", "revoke", made["id"]).returncode == 0
        time.sleep(2.5)
        done = place.voxfarm("jobs", "list", "--key", made["key"])
        assert done.returncode == 2
        assert "revoked" in done.stderr
        farm.send_signal(signal.SIGTERM)
        farm.communicate(timeout=20)
    alone = place.voxfarm("render", "-", "--out", "y.wav", "--format", "wav", stdin="Three.")
    assert alone.returncode == 0, alone.stderr


def test_a_taken_port_is_said_so(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = place.voxfarm("up", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "is taken by another program" in done.stderr


def test_a_farm_whose_engine_cannot_load_stops_and_says_why(tmp_path: Path) -> None:
    options = {"VOXFARM_ENGINE_OPTIONS": '{"tone": {"loudness": 11}}'}
    done = Place(tmp_path, extra=options).voxfarm("up", "--port", "0")
    assert done.returncode == 1
    assert "node-0 died 5 times" in done.stderr
    assert "its options: delay_s, slots" in done.stderr
    place = Place(tmp_path)
    done = place.voxfarm("up", "--port", "0", "--engine", "no-such-engine")
    assert done.returncode == 2
    assert "there is no engine no-such-engine; installed are: " in done.stderr
    wait_until(lambda: not place.processes(), within_s=10)


def test_the_doctor_finds_this_machine_well_and_loads_the_engine_offline(place: Place) -> None:
    done = place.voxfarm("doctor", "--json")
    told = json.loads(done.stdout)
    wrong = [check for check in told["checks"] if not check["ok"] and check["name"] != "api port"]
    assert wrong == []
    assert "engine tone" in [check["name"] for check in told["checks"]]


def test_the_doctor_names_what_is_missing_and_what_mends_it(place: Place) -> None:
    done = place.voxfarm("doctor", "--engine", "no-such-engine")
    assert done.returncode == 1
    assert "MISSING engine no-such-engine" in done.stdout
    assert "mend: " in done.stdout
