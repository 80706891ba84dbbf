"""Programs started the quick way: their arguments, their exit status, their garbage."""

import gc
import subprocess
from pathlib import Path

import pytest

from shared.starting import command, importing

PROGRAM = """
import gc, sys
was_off = not gc.isenabled()
def main():
    print(was_off, gc.isenabled(), gc.get_freeze_count() > 0, *sys.argv)
    return 7
"""


@pytest.mark.parametrize("kind", ["module", "package"])
def test_a_program_finds_its_name_arguments_and_garbage_collector(
    tmp_path: Path, kind: str
) -> None:
    here = tmp_path / "here"  # where a folder is named like a package of ours
    (here / "shared").mkdir(parents=True)
    (here / "shared" / "__init__.py").write_text("raise SystemExit('imported a stranger')")
    if kind == "module":
        (tmp_path / "prog.py").write_text(PROGRAM)
    else:
        (tmp_path / "prog").mkdir()
        (tmp_path / "prog" / "__init__.py").touch()
        (tmp_path / "prog" / "__main__.py").write_text(PROGRAM)
    done = subprocess.run(
        command("prog", "--index", "1"),
        cwd=here,
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout.split() == ["True", "True", "True", "prog", "--index", "1"]


def test_the_collector_is_on_again_after_imports_that_failed() -> None:
    with pytest.raises(ModuleNotFoundError), importing():
        __import__("no_such_module_of_anybody")
    assert gc.isenabled()
