"""`voxfarm tune` as its user sees it: a real engine measured, the tier file written and read."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError

from cli.words import TIMES
from shared.settings import DEFAULT_TIERS, Settings
from shared.tiers import Tier


def tune(data: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli", "tune", "--data", str(data), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )


QUICK = ("--engine", "simulated", "--lengths", "40", "--batches", "1,2", "--repeats", "1")


def of_simulated(**options: object) -> dict[str, str]:
    return {"VOXFARM_ENGINE_OPTIONS": json.dumps({"simulated": options})}


def installed(folder: Path, name: str, source: str) -> dict[str, str]:
    """An environment in which another package brings the engine `name`."""
    (folder / f"{name}_engine.py").write_text(source)
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[voxfarm.engines]\n{name} = {name}_engine:build\n")
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path)}


def test_a_tuned_engine_gets_a_tier_file_that_the_farm_reads(tmp_path: Path) -> None:
    told = tune(tmp_path, *QUICK)
    assert told.returncode == 0, told.stderr
    assert f"{TIMES} real time" in told.stdout
    assert "█" in told.stdout
    assert "mixed" in told.stdout
    tiers = Settings(data_dir=tmp_path).tiers
    assert {tier: of.max_batch_of("simulated") for tier, of in tiers.items()} == dict.fromkeys(
        Tier, 2
    )


def test_another_engine_of_the_folder_is_not_bound_by_it(tmp_path: Path) -> None:
    tune(tmp_path, *QUICK, **of_simulated(base_s=0, per_item_s=0.2))  # no faster in a batch
    again = ("--engine", "simulated-ar", "--lengths", "8", "--batches", "1,2", "--repeats", "1")
    assert tune(tmp_path, *again).returncode == 0
    for tier, of in Settings(data_dir=tmp_path).tiers.items():
        assert of.max_batch_of("hibari-torch") == DEFAULT_TIERS[tier].max_batch
        assert of.max_batch_of("simulated") == 1
        assert of.max_batch_of("simulated-ar") == 2


@pytest.mark.parametrize(
    ("arguments", "slots", "only"),
    [((), 1, 1), (("--batches", "4"), 8, 4)],
    ids=["one slot", "one size"],
)
def test_where_there_is_nothing_to_choose_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], slots: int, only: int
) -> None:
    quick = ("--engine", "simulated", "--lengths", "40", "--repeats", "1", *arguments)
    told = tune(tmp_path, *quick, **of_simulated(slots=slots))
    assert told.returncode == 0, told.stderr
    assert f"only batches of {only}: nothing to choose" in told.stdout
    assert list(tmp_path.iterdir()) == []
    shown = json.loads(tune(tmp_path, *quick, "--json", **of_simulated(slots=slots)).stdout)
    assert (shown["tiers"], shown["file"]) == (None, None)
    assert "nothing to choose" in shown["notes"][0]


def test_json_holds_figures_choices_and_the_file(tmp_path: Path) -> None:
    told = tune(tmp_path, *QUICK, "--json", "--out", str(tmp_path / "deep" / "mine.json"))
    shown = json.loads(told.stdout)
    assert [(f["batch"], f["mixed"]) for f in shown["figures"]] == [
        (1, False), (2, False), (2, True)
    ]  # fmt: skip
    assert [choice["keeps_target"] for choice in shown["choices"]] == [True] * 3
    assert json.loads(Path(shown["file"]).read_text()) == shown["tiers"]
    assert not (tmp_path / "tiers.json").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert tune(tmp_path, *QUICK, "--dry-run").returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_tier_that_misses_its_target_is_named_with_what_would_help(tmp_path: Path) -> None:
    told = tune(tmp_path, *QUICK, "--dry-run", **of_simulated(base_s=0.6, per_item_s=0.01))
    assert told.returncode == 0, told.stderr
    assert "rush: no batches keep its target" in told.stdout
    assert "a first_audio_s of" in told.stdout


def test_a_file_that_the_environment_hides_is_said(tmp_path: Path) -> None:
    tiers = {tier: settings.model_dump() for tier, settings in DEFAULT_TIERS.items()}
    told = tune(tmp_path, *QUICK, VOXFARM_TIERS=json.dumps(tiers))
    assert "VOXFARM_TIERS is set and comes before this file" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--engine", "nobody"], "no engine named"),
        (["--batches", "one"], "--batches: give numbers"),
        (["--batches", "0"], "--batches: give numbers"),
        (["--batches", "-1,2"], "--batches: give numbers"),
        (["--batches", "1,,2"], "--batches: give numbers"),
        (["--batches", "16"], "--batches: 16 is not possible: engine simulated takes"),
        (["--batches", "2,2"], "--batches: 2 is named twice"),
        (["--lengths", "0"], "--lengths: give numbers"),
        (["--lengths", "-40"], "--lengths: give numbers"),
        (["--lengths", "401"], "--lengths: 401 is not possible: engine simulated"),
        (["--lengths", "1"], "--lengths: 1 is not possible"),
        (["--lengths", "40,40"], "--lengths: 40 is named twice"),
        (["--repeats", "0"], "--repeats"),
    ],
)
def test_what_cannot_be_measured_is_said(tmp_path: Path, arguments: list[str], reason: str) -> None:
    told = tune(tmp_path, *QUICK, *arguments)
    assert told.returncode == 2
    assert reason in told.stderr
    assert "Traceback" not in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_options_that_the_engine_does_not_take_are_said(tmp_path: Path) -> None:
    told = tune(tmp_path, *QUICK, **of_simulated(tempo=1))
    assert told.returncode == 2
    assert "its options: base_s" in told.stderr


@pytest.mark.parametrize("place", ["a file for a folder", "a folder for a file", "out in a file"])
def test_a_place_that_cannot_be_written_is_said_before_anything_is_measured(
    tmp_path: Path, place: str
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    data, arguments = {
        "a file for a folder": (file, []),
        "a folder for a file": (tmp_path, ["--out", str(tmp_path)]),
        "out in a file": (tmp_path, ["--out", str(file / "tiers.json")]),
    }[place]
    told = tune(data, *QUICK, *arguments)
    assert told.returncode == 2
    assert "cannot write" in told.stderr
    assert "batch 1" not in told.stderr
    assert "Traceback" not in told.stderr
    assert file.read_text() == "mine"


NOISY = """
from worker.engines import simulated

class Noisy(simulated.SimulatedEngine):
    def step(self):
        print("loading weights: 100 %")
        return super().step()

def build():
    print("hello from a library")
    return Noisy(base_s=0, per_item_s=0.001, slots=2)
"""

BROKEN = """
from worker.engines import simulated

class Broken(simulated.SimulatedEngine):
    def step(self):
        if any(len(u.text) > 20 for u in self._held):
            raise RuntimeError
        return super().step()

def build():
    return Broken(base_s=0, per_item_s=0.001, slots=2)
"""


def test_what_an_engine_prints_does_not_get_between_the_figures(tmp_path: Path) -> None:
    told = tune(
        tmp_path, *QUICK, "--engine", "noisy", "--json", **installed(tmp_path, "noisy", NOISY)
    )
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["figures"]
    assert "hello from a library" in told.stderr


def test_an_engine_that_speaks_nothing_is_a_finding(tmp_path: Path) -> None:
    told = tune(tmp_path, *QUICK, "--engine", "broken", **installed(tmp_path, "broken", BROKEN))
    assert told.returncode == 1
    assert "the engine fails at 1 of 40 characters: RuntimeError" in told.stderr
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "tiers.json").exists()


def test_the_measured_engine_dies_with_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli", "tune", "--data", str(tmp_path), *QUICK]
    slow = os.environ | of_simulated(base_s=1.0)
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=slow) as process:
        assert process.stderr is not None
        assert b"batch 1" in process.stderr.readline()
        [child] = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGKILL)
    deadline_s = time.monotonic() + 60
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline_s, "it goes on measuring for nobody"
        time.sleep(0.05)


def test_the_environment_comes_before_the_tier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = DEFAULT_TIERS[Tier.BULK]
    (tmp_path / "tiers.json").write_text(f'{{"rush": {slow.model_dump_json()}}}')
    assert Settings(data_dir=tmp_path).tiers[Tier.RUSH] == slow
    named = {tier: settings.model_dump() for tier, settings in DEFAULT_TIERS.items()}
    monkeypatch.setenv("VOXFARM_TIERS", json.dumps(named))
    assert Settings(data_dir=tmp_path).tiers == DEFAULT_TIERS


def test_a_tier_file_that_is_broken_is_named(tmp_path: Path) -> None:
    (tmp_path / "tiers.json").write_text("{")
    with pytest.raises(ValidationError, match=r"tiers\.json cannot be read"):
        Settings(data_dir=tmp_path)
