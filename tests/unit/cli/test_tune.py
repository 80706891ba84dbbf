"""`voxfarm tune` as its user sees it: a real engine measured, the tier file written and read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from cli.words import TIMES
from shared.settings import DEFAULT_TIERS, Settings
from shared.tiers import Tier


def tune(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli", "tune", "--data", str(data), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


QUICK = ("--engine", "simulated", "--lengths", "40", "--batches", "1,2", "--repeats", "1")


def test_a_tuned_engine_gets_a_tier_file_that_the_farm_reads(tmp_path: Path) -> None:
    told = tune(tmp_path, *QUICK)
    assert told.returncode == 0, told.stderr
    assert f"{TIMES} real time" in told.stdout
    assert "█" in told.stdout
    tiers = Settings(data_dir=tmp_path).tiers
    assert {tier: settings.max_batch for tier, settings in tiers.items()} == dict.fromkeys(Tier, 2)


def test_json_holds_figures_choices_and_the_file(tmp_path: Path) -> None:
    told = tune(tmp_path, *QUICK, "--json", "--out", str(tmp_path / "deep" / "mine.json"))
    shown = json.loads(told.stdout)
    assert [f["batch"] for f in shown["figures"]] == [1, 2]
    assert json.loads(Path(shown["file"]).read_text()) == shown["tiers"]
    assert not (tmp_path / "tiers.json").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert tune(tmp_path, *QUICK, "--dry-run").returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--engine", "nobody"], 1, "no engine named"),
        (["--batches", "one"], 2, "--batches"),
        (["--lengths", "0"], 2, "--lengths"),
    ],
)
def test_what_cannot_be_measured_is_said(
    tmp_path: Path, arguments: list[str], code: int, reason: str
) -> None:
    told = tune(tmp_path, *arguments)
    assert told.returncode == code
    assert reason in told.stderr
    assert "Traceback" not in told.stderr


def test_the_environment_comes_before_the_tier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiers.json").write_text("{}")
    assert Settings(data_dir=tmp_path).tiers == {}
    named = {tier: settings.model_dump() for tier, settings in DEFAULT_TIERS.items()}
    monkeypatch.setenv("VOXFARM_TIERS", json.dumps(named))
    assert Settings(data_dir=tmp_path).tiers == DEFAULT_TIERS


def test_a_tier_file_that_is_broken_is_named(tmp_path: Path) -> None:
    (tmp_path / "tiers.json").write_text("{")
    with pytest.raises(ValidationError, match=r"tiers\.json cannot be read"):
        Settings(data_dir=tmp_path)
