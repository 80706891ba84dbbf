"""The supervisor keeps real processes alive, ends them in order and leaves none behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cli.child_logs import bound, last_lines, length_bytes
from cli.children import ProcessChild
from cli.errors import FarmStoppedError
from cli.processes import Process, Stage, farm_processes
from cli.restarts import RestartPolicy
from cli.supervisor import StopTimes, Supervisor

QUICK = StopTimes(front_s=0.3, work_s=1.0, end_s=2.0)
AT_ONCE = RestartPolicy(first_s=0.01, longest_s=0.02)
SH = shutil.which("sh") or "/bin/sh"
SLEEPS = (shutil.which("sleep") or "/bin/sleep", "600")


class Crew:
    """A supervisor with the lines it said."""

    def __init__(self, folder: Path, environment: Callable[[], Mapping[str, str]]) -> None:
        self.said: list[str] = []
        self.folder = folder
        self.environment = environment
        self.children: dict[str, ProcessChild] = {}
        self.supervisor = Supervisor(say=self.said.append, policy=AT_ONCE, stop_times=QUICK)

    def add(self, name: str, *argv: str, stage: Stage = Stage.WORK) -> ProcessChild:
        process = Process(name, argv, stage)
        child = ProcessChild(process, logs=self.folder, environment=self.environment)
        self.supervisor.add(child)
        self.children[name] = child
        return child

    def tick_until(self, condition: Callable[[], bool], within_s: float = 10.0) -> None:
        deadline_s = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline_s, self.said
            self.supervisor.tick()
            time.sleep(0.005)


@contextmanager
def a_crew(folder: Path, environment: Callable[[], Mapping[str, str]]) -> Iterator[Crew]:
    crew = Crew(folder, environment)
    try:
        yield crew
    finally:
        crew.supervisor.stop()


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with a_crew(tmp_path, lambda: os.environ) as crew:
        yield crew


def alive(pid: int | None) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], within_s: float = 10.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_a_killed_child_is_named_and_started_again(crew: Crew) -> None:
    child = crew.add("node-0", *SLEEPS)
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    crew.tick_until(lambda: len(crew.said) == 2)
    assert alive(child.pid)
    assert child.pid != first
    assert crew.said == [
        "node-0 died (killed by SIGKILL); starting it again in 0.01 s",
        f"node-0 is started again (pid {child.pid})",
    ]


def test_a_child_that_ends_by_itself_is_started_again_too(crew: Crew) -> None:
    child = crew.add("cpu", SH, "-c", "exit 0")
    first = child.pid
    crew.tick_until(lambda: child.pid != first)
    assert "cpu died (exit status 0)" in crew.said[0]


def test_a_child_that_will_not_stay_alive_stops_the_farm_with_its_last_lines(crew: Crew) -> None:
    other = crew.add("api", *SLEEPS)
    crew.add("node-0", SH, "-c", "echo no model here >&2; exit 7")
    with pytest.raises(FarmStoppedError) as caught:
        crew.tick_until(lambda: False)
    assert "node-0 died 5 times within 60 s" in str(caught.value)
    assert "exit status 7" in str(caught.value)
    assert str(caught.value).endswith("no model here")
    assert alive(other.pid)


def test_what_an_earlier_farm_wrote_into_a_log_is_not_told_as_the_reason(crew: Crew) -> None:
    (crew.folder / "node-0.log").write_text("all is well\n")
    crew.add("node-0", SH, "-c", "echo no model here >&2; exit 7")
    with pytest.raises(FarmStoppedError) as caught:
        crew.tick_until(lambda: False)
    assert "no model here" in str(caught.value)
    assert "all is well" not in str(caught.value)


def test_a_log_that_was_emptied_meanwhile_is_told_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("first\n" * 100)
    before = length_bytes(log)
    assert last_lines(log, since_bytes=before) == ""
    bound(log, max_bytes=0)
    log.write_text("second\n")
    assert last_lines(log, since_bytes=before) == "second"


def test_a_view_that_will_not_stay_alive_is_given_up_and_the_farm_goes_on(crew: Crew) -> None:
    other = crew.add("api", *SLEEPS)
    crew.add("flower", SH, "-c", "echo port taken >&2; exit 1", stage=Stage.VIEW)
    crew.tick_until(lambda: any("going on without flower" in line for line in crew.said))
    assert "port taken" in crew.said[-1]
    said = len(crew.said)
    for _ in range(50):
        crew.supervisor.tick()
    assert len(crew.said) == said
    assert alive(other.pid)


def test_a_program_that_is_not_there_counts_as_dying(crew: Crew, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    child = crew.add("weed", str(program))
    crew.tick_until(lambda: alive(child.pid))
    program.unlink()
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(FarmStoppedError, match="weed died 5 times"):
        crew.tick_until(lambda: False)


def test_the_end_comes_in_order_front_work_stores(crew: Crew, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    says_goodbye = (
        "trap 'sleep 0.1; echo $0 >> {}; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    )
    for stage in (Stage.STORE, Stage.WORK, Stage.FRONT):
        crew.add(stage.name, SH, "-c", says_goodbye.format(notes), stage.name, stage=stage)
    wait_until(lambda: all("up" in last_lines(child.log) for child in crew.children.values()))
    crew.add("view", SH, "-c", "trap '' TERM; sleep 600", stage=Stage.VIEW)
    assert crew.supervisor.stop() == []
    assert notes.read_text().split() == ["FRONT", "WORK", "STORE"]
    assert not any(alive(child.pid) for child in crew.children.values())


def test_who_does_not_leave_in_time_is_killed_with_all_it_started(
    crew: Crew, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    deaf = f"trap '' TERM; (trap '' TERM; sleep 600) & echo $! > {inner}; echo up; wait; sleep 600"
    crew.add("deaf", SH, "-c", deaf)
    polite = crew.add("store", *SLEEPS, stage=Stage.STORE)
    wait_until(lambda: "up" in last_lines(crew.children["deaf"].log))
    grandchild = int(inner.read_text())
    assert alive(grandchild)
    began_s = time.monotonic()
    assert crew.supervisor.stop() == ["deaf"]
    assert QUICK.work_s <= time.monotonic() - began_s < QUICK.end_s
    assert not alive(polite.pid)
    wait_until(lambda: not alive(grandchild))


def test_stopping_twice_or_before_anything_started_is_harmless() -> None:
    supervisor = Supervisor(say=lambda _: None)
    assert supervisor.stop() == []
    assert supervisor.stop() == []


def test_each_start_sees_the_settings_of_its_moment(tmp_path: Path) -> None:
    place = {"WHERE": "here", "PATH": os.environ["PATH"]}
    with a_crew(tmp_path, lambda: place) as crew:
        crew.add("store", *SLEEPS, stage=Stage.STORE)
        store_pid = crew.children["store"].pid
        child = crew.add("api", SH, "-c", "echo at $WHERE; exec sleep 600")
        wait_until(lambda: "at here" in last_lines(child.log))
        place["WHERE"] = "there"
        crew.supervisor.restart_all_but(Stage.STORE)
        crew.tick_until(lambda: "at there" in last_lines(child.log))
        assert crew.children["store"].pid == store_pid
        assert not any("died" in line for line in crew.said)


def test_ctrl_c_of_the_terminal_does_not_reach_the_children(crew: Crew) -> None:
    child = crew.add("api", *SLEEPS)
    assert child.pid is not None
    assert os.getpgid(child.pid) != os.getpgid(0)


SUPERVISES = """
import os, sys, time
from pathlib import Path
from cli.children import ProcessChild
from cli.processes import Process, Stage
from cli.supervisor import Supervisor
supervisor = Supervisor(say=print)
for name in ("a", "b"):
    process = Process(name, tuple(sys.argv[2:]), Stage.WORK)
    child = ProcessChild(process, logs=Path(sys.argv[1]), environment=lambda: os.environ)
    supervisor.add(child)
    print(child.pid, flush=True)
while True:
    supervisor.tick()
    time.sleep(0.05)
"""


def test_the_children_die_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SUPERVISES, str(tmp_path), *SLEEPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        pids = [int(supervisor.stdout.readline()) for _ in range(2)]
        assert all(alive(pid) for pid in pids)
        supervisor.kill()
    wait_until(lambda: not any(alive(pid) for pid in pids), within_s=5)


def test_a_log_stays_within_its_bound_while_its_child_writes(crew: Crew) -> None:
    child = crew.add("chatty", SH, "-c", "while :; do echo a line of some length; done")
    for _ in range(3):
        wait_until(lambda: child.log.stat().st_size > 50_000)
        assert bound(child.log, max_bytes=50_000)
    older = child.log.with_name("chatty.log.1")
    assert older.stat().st_size > 50_000
    with child.log.open("rb") as log:
        assert b"\0" not in log.read(4096)  # written from the start again, not past a hole
    assert not bound(crew.folder / "nothing.log")


def test_the_table_names_every_process_once_and_starts_modules_only() -> None:
    table = farm_processes(nodes=2, flower_port=5555, python="PY")
    names = [process.name for process in table]
    assert sorted(names) == ["api", "cpu", "deliver", "flower", "node-0", "node-1", "scheduler"]
    assert {process.argv[:2] for process in table} == {("PY", "-P")}
    assert not any(p.name == "flower" for p in farm_processes(nodes=1, flower_port=None))
