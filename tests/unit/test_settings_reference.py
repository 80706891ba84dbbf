"""docs/settings.md is what the code says, and every setting is explained."""

from pathlib import Path

from shared.settings import Settings
from shared.settings_reference import reference

DOC = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_up_to_date() -> None:
    assert DOC.read_text() == reference()


def test_every_setting_is_explained() -> None:
    assert [n for n, f in Settings.model_fields.items() if not f.description] == []
