"""The README tells the truth: its example is the file (which test_listening.py runs)."""

import re
from pathlib import Path

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
