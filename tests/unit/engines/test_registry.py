"""Engines are found by name, without importing them, and their absence is explained."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from shared.errors import NotFoundError, SetupError, UsageError
from worker.engines import registry


def test_engines_are_listed_without_being_imported() -> None:
    code = (
        "import sys; from worker.engines.registry import engine_names; print(*engine_names());"
        "assert not {'hibari', 'torch', 'onnxruntime', 'worker.engines.tone'} & set(sys.modules)"
    )
    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.split()) >= {"hibari", "hibari-torch", "simulated", "tone"}


def test_an_engine_is_built_with_its_options() -> None:
    assert registry.build("simulated", {"slots": 3}).info.slots == 3


def test_an_unknown_engine_lists_the_choices() -> None:
    with pytest.raises(NotFoundError, match=r"installed: .*tone") as caught:
        registry.build("nobody", {})
    assert "hibari" in str(caught.value.fields["choices"])


def test_an_unknown_option_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match="delay_s, slots"):
        registry.build("tone", {"tempo": 1})


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("no_such_package_here:build", "no_such_package_here"),
        ("worker.engines.no_such_engine:build", "force-reinstall"),
        ("tests.unit.engines.needs_a_missing_package:build", r"voxfarm\[worker\]"),
    ],
)
def test_a_missing_dependency_names_the_command_that_mends_it(target: str, remedy: str) -> None:
    with pytest.raises(SetupError, match=remedy) as caught:
        registry.load(EntryPoint("strange", target, registry.GROUP))
    assert "pip install" in str(caught.value)
