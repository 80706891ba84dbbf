"""The README tells the truth: its example is the file, and the file works on a real farm."""

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "text_to_url.py"


def test_the_readme_shows_the_example_as_it_is() -> None:
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block == EXAMPLE.read_text()
    assert len(block.splitlines()) <= 30


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


@pytest.mark.xdist_group("hibari")
def test_the_example_prints_a_playable_url(hibari_farm: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), hibari_farm], check=True, capture_output=True, text=True
    )
    url = done.stdout.split()[-1]
    audio = httpx.get(url)
    assert audio.headers["content-type"] == "audio/mpeg"
    assert audio.content[:3] == b"ID3" or audio.content[0] == 0xFF
