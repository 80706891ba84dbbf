"""Every benchmark is a command that explains itself and says where its figures go."""

import ast
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def is_command(module: Path) -> bool:
    """True when the module does something by itself: has a statement under its name's test."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in tree.body)


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *argv]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=150, check=False, cwd=BENCHMARKS.parent
    )


def test_each_command_has_help_and_a_place_for_its_json() -> None:
    commands = [path.stem for path in BENCHMARKS.glob("*.py") if is_command(path)]
    commands += [path.parent.name for path in BENCHMARKS.glob("*/__main__.py")]
    assert {"farm", "engine_bare", "noop", "novel", "watermark"} <= set(commands)
    with ThreadPoolExecutor(2) as pool:
        told = pool.map(lambda name: run(f"benchmarks.{name}", "--help"), commands)
    for name, done in zip(commands, told, strict=True):
        assert done.returncode == 0, (name, done.stderr)
        assert done.stderr == "", name
        assert "--json" in done.stdout, name


def test_the_bare_engine_prints_one_json_object(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("One.\n\nTwo.\n")
    texts = str(tmp_path / "texts")
    wishes = ("--engine", "tone", "--processes", "1", "--json", "-")
    done = run("benchmarks.engine_bare", texts, *wishes)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["texts"], told["refused"], told["bars"]) == (2, 0, [])
    assert told["audio_s"] > 0
    assert "cores" in told["machine"]
