"""What the settings make of what they are given."""

from pathlib import Path

from shared.settings import DEFAULT_TIERS, TIERS_FILE, Settings
from shared.tiers import Tier


def test_a_tier_that_is_not_named_keeps_its_default(tmp_path: Path) -> None:
    assert Settings(data_dir=tmp_path, tiers={}).tiers == DEFAULT_TIERS
    slow = DEFAULT_TIERS[Tier.BULK]
    (tmp_path / TIERS_FILE).write_text(f'{{"rush": {slow.model_dump_json()}}}')
    assert Settings(data_dir=tmp_path).tiers == {**DEFAULT_TIERS, Tier.RUSH: slow}
