"""The engine of docs/engines.md, installed as its page says, is found, listed and speaks."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.hosts import running_host, utterance

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "engine" / "beeps.py"
PAGE = (ROOT / "docs" / "engines.md").read_text()


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the example lies on the path of new processes, with its entry point."""
    shutil.copy(EXAMPLE, tmp_path / "beeps.py")
    info = tmp_path / "beeps-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beeps\nVersion: 1.0\n")
    [entry] = re.findall(r'```toml\n\[project\.entry-points\."(.*?)"\]\n(\w+) = "(.*?)"\n```', PAGE)
    (info / "entry_points.txt").write_text("[{}]\n{} = {}\n".format(*entry))
    path = [str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))


def test_the_page_shows_the_example_as_it_is() -> None:
    assert f"```python\n{EXAMPLE.read_text()}```" in PAGE
    assert len(EXAMPLE.read_text().splitlines()) <= 42


@pytest.mark.usefixtures("_installed")
def test_it_is_found_by_name_and_takes_its_options() -> None:
    command = [sys.executable, "-P", "-m", "cli.engine_probe", "beeps", '{"beep_s": 0.1}']
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert [voice["id"] for voice in found["info"]["voices"]] == ["low", "high"]
    assert found["audio_s"] == pytest.approx(0.1)


@pytest.mark.usefixtures("_installed")
def test_it_speaks_in_a_host_of_its_own() -> None:
    with running_host("beeps") as host:
        said = [
            host.link.synthesize(utterance("One two three.", voice=v), on_progress=lambda: None)
            for v in ("low", "high")
        ]
    assert [len(samples) for samples in said] == [3 * 3200, 3 * 3200]
    pitches_hz = [np.argmax(np.abs(np.fft.rfft(samples[:3200]))) * 5 for samples in said]
    assert pitches_hz == pytest.approx([220, 880], abs=10)
