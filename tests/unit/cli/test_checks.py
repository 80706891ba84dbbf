"""The doctor names what mends a fault: the fault's own remedy, and none where it knows none."""

import shlex
from pathlib import Path

import pytest

from cli.checks import engine_loads


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of every probe, with an installed package that brings engines."""
    info = tmp_path / "strange_engines-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-engines\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[voxfarm.engines]\nstrange = strange_engine:build\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return tmp_path / "strange_engine.py"


@pytest.mark.parametrize(
    ("source", "mend"),
    [
        ("raise ModuleNotFoundError('no torch', name='torch')", "pip install 'voxfarm[gpu]'"),
        ("raise ModuleNotFoundError('no soxr', name='soxr')", "pip install 'voxfarm[worker]'"),
        ("raise ImportError('bad .so')", "pip install --force-reinstall 'voxfarm[worker]'"),
        (
            "from shared import errors\ndef build(): raise errors.SetupError('', mend='fetch')",
            "fetch",
        ),
        ("def build(): raise RuntimeError('who knows')", ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ""),
    ],
)
def test_an_engine_that_does_not_load_is_mended_by_its_own_remedy(
    stranger: Path, source: str, mend: str
) -> None:
    stranger.write_text(source)
    check = engine_loads("strange", {})
    assert not check.ok
    assert check.mend == mend


def test_without_its_module_the_package_is_to_be_reinstalled(stranger: Path) -> None:
    assert not stranger.exists()
    assert shlex.split(engine_loads("strange", {}).mend)[:2] == ["pip", "install"]


def test_for_an_unknown_engine_the_choices_are_listed() -> None:
    check = engine_loads("no-such-engine", {})
    assert not check.ok
    assert {"hibari,", "tone"} <= set(check.mend.split())
    assert "pip" not in check.mend


def test_options_that_an_engine_does_not_take_are_to_be_corrected() -> None:
    check = engine_loads("tone", {"tempo": 1})
    assert "its options: " in check.detail
    assert check.mend == "correct VOXFARM_ENGINE_OPTIONS"
