"""What cannot be rendered is refused before a farm starts; a farm that will not start says why."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.data_folder import DataFolder
from cli.embedded import EmbeddedFarm
from shared.errors import UsageError


def render(
    place: Path, *wishes: str, stdin: str = "One.", **variables: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOXFARM_")}
    return subprocess.run(
        [sys.executable, "-m", "cli", "render", "-", *wishes],
        cwd=place,
        env=kept | {"VOXFARM_DATA_DIR": str(place / "data"), "COLUMNS": "200"} | variables,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        (["--engine", "nope"], "there is no engine nope; installed are: "),
        (["--fallback-engine", "nope"], "there is no engine nope; installed are: "),
        (["--speed", "2.1"], "no speed between 0.5 and 2"),
        (["--speed", "nan"], "no speed between 0.5 and 2"),
        (["--speed", "fast"], "no speed between 0.5 and 2"),
        (["--sample-rate", "11"], "choose one of 8000, "),
        (["--seed", str(2**63)], "9223372036854775807"),
    ],
)
def test_a_wish_that_no_farm_can_grant_is_refused_and_none_is_started(
    tmp_path: Path, wishes: list[str], why: str
) -> None:
    done = render(tmp_path, *wishes)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_so_is_an_engine_that_a_setting_names(tmp_path: Path) -> None:
    done = render(tmp_path, "--json", VOXFARM_ENGINES='["nope"]')
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "unknown-engine"
    assert list(tmp_path.iterdir()) == []


def test_a_farm_that_refuses_to_start_is_quoted_without_what_earlier_ones_said(
    tmp_path: Path,
) -> None:
    folder = DataFolder(tmp_path)
    folder.prepare()
    (folder.logs / "farm.log").write_text("Voxfarm is up after 4.2 s\n")
    farm = EmbeddedFarm(folder, ["--engine", "no-such-engine"])
    with folder.using(), pytest.raises(UsageError) as caught:
        farm.ensure()
    assert "there is no engine no-such-engine" in str(caught.value)
    assert "Voxfarm is up" not in str(caught.value)
