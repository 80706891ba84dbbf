"""Every how-to can be found from the list of them."""

from pathlib import Path

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def test_every_how_to_is_listed() -> None:
    listed = (HOW_TO / "README.md").read_text(encoding="utf-8")
    missing = [p.name for p in HOW_TO.glob("*.md") if f"({p.name})" not in listed]
    assert missing == ["README.md"]
