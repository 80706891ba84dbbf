"""`voxfarm keys` on a real ledger: what is shown, what is kept, what is refused."""

import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.local_key import make_local_key, read_local_key
from cli.main import build_app
from shared.api_keys import digest, key_id_of
from shared.ledger import keys
from shared.ledger.database import open_database


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        if name.startswith("VOXFARM_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "farm"
    monkeypatch.setenv("VOXFARM_DATA_DIR", str(folder))
    return folder


def voxfarm(*argv: str) -> Result:
    return CliRunner().invoke(build_app(), ["keys", *argv])


def listed(*argv: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(voxfarm("list", "--json", *argv).stdout)
    return found


def test_a_key_is_shown_once_and_only_its_digest_is_kept(data: Path) -> None:
    done = voxfarm("create", "--tenant", "news", "--name", "the desk")
    assert done.exit_code == 0, done.output
    key = done.stdout.strip()
    assert key_id_of(key) is not None
    with open_database(f"sqlite:///{data / 'voxfarm.db'}") as database:
        [record] = database.read(keys.listed)
    assert (record.sha256, record.tenant, record.name) == (digest(key), "news", "the desk")
    shown = voxfarm("list").stdout
    assert record.id in shown
    assert key not in shown
    assert key not in json.dumps(listed())
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_limits_are_kept_as_given(data: Path) -> None:
    limits = ("--tier", "bulk", "--tier", "rush", "--quota-audio", "3600", "--quota-jobs", "7")
    made = json.loads(voxfarm("create", *limits, "--json").stdout)
    [found] = listed()
    assert (found["id"], found["tenant"]) == (made["id"], "default")
    assert (found["tiers"], found["quota_audio_s"], found["quota_jobs"]) == (
        ["rush", "bulk"],
        3600.0,
        7,
    )
    assert "3,600 s" in voxfarm("list").stdout
    assert data.exists()


@pytest.mark.usefixtures("data")
def test_a_revoked_key_is_listed_only_on_demand() -> None:
    made = json.loads(voxfarm("create", "--json").stdout)
    assert voxfarm("revoke", made["id"]).exit_code == 0
    assert voxfarm("list").stdout.strip() == "no keys"
    [remembered] = listed("--all")
    assert remembered["revoked_at"] is not None
    assert "revoked before" in voxfarm("revoke", made["id"]).stdout
    unknown = voxfarm("revoke", "nonsense")
    assert unknown.exit_code == 2
    assert "no such key" in unknown.stderr


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    "argv",
    [
        ("--tenant", "News"),
        ("--tenant", "a/b"),
        ("--tenant", "x" * 65),
        ("--tenant", ""),
        ("--tenant", ".."),
        ("--name", "two\nlines"),
        ("--name", "x" * 101),
        ("--tier", "urgent"),
        ("--quota-jobs", "0"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_kept(argv: tuple[str, ...]) -> None:
    assert voxfarm("create", *argv).exit_code == 2
    assert listed("--all") == []


def test_the_folders_own_key_is_made_once_for_its_user_alone(tmp_path: Path) -> None:
    assert read_local_key(tmp_path) is None
    key = make_local_key(tmp_path)
    assert key_id_of(key) is not None
    assert make_local_key(tmp_path) == read_local_key(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "local-key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["local-key"]
